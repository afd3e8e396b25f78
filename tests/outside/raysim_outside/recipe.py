"""An optimiser, a gradient, an augmentation, a schedule, a server rule, an aggregate and a behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from raysim.algorithms import Record
from raysim.algorithms.aggregates import Aggregate
from raysim.algorithms.rules import ServerRule
from raysim.clients import Behaviour
from raysim.local import Augmentation, Gradient, Optimizer
from raysim.parts.part import Positive
from raysim.schedules import Schedule

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from raysim.local.gradients import GradientPoint, Take


class Signs(Optimizer):
    """Parameters move by the signs of a gradient that is kept in part."""

    name: str = "outside_signs"
    share: Positive = 0.5
    """How much of the gradients before is kept."""

    def init(self, w: Tensor) -> Record:
        return {"mean": w * 0}

    def move(self, w: Tensor, gradient: Tensor, state: Record, lr: float, taken: int) -> None:
        state["mean"].mul_(self.share).add_(gradient)
        w.sub_(state["mean"].sign(), alpha=lr)


class Doubled(Gradient):
    """Gradients are taken twice as long."""

    name: str = "outside_doubled"

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = before(x, y)
        return loss, 2 * gradient


class Jitter(Augmentation):
    """Inputs change a little."""

    images: ClassVar[bool] = False

    name: str = "outside_jitter"
    spread: Positive = 0.1
    """Standard deviation of the change."""

    def apply(self, x: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
        import torch

        return x + self.spread * torch.randn_like(x), y


class Harmonic(Schedule):
    """start / (1 + t)."""

    name: str = "outside_harmonic"
    start: Positive = 0.1
    """The first value."""

    def curve(self, position: float) -> float:
        return self.start / (1 + position)

    @property
    def values(self) -> tuple[float, float]:
        return 1e-9, self.start


class Halfway(ServerRule):
    """The server moves half of the way."""

    name: str = "outside_halfway"

    def move(self, kept: Record, w: Tensor, direction: Tensor, lr: float) -> tuple[Tensor, Record]:
        return w + direction / 2, {}


class Shortest(Aggregate):
    """The shortest update counts for all."""

    name: str = "outside_shortest"

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        return sum(weights) * updates[updates.norm(dim=1).argmin()]


class Louder(Behaviour):
    """Clients send a multiple of their updates."""

    name: str = "outside_louder"
    factor: Positive = 2.0
    """The factor."""

    def sent(self, value: Tensor, draw: Generator) -> Tensor:
        return self.factor * value
