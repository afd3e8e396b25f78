"""A model, a solver, a metric and a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from raysim.local import TrainingLoss
from raysim.metrics import Metric
from raysim.models import ModelPart, Solver
from raysim.parts.part import Count, Positive

if TYPE_CHECKING:
    from torch import Tensor, nn


class Net(ModelPart):
    """A hidden layer with tanh."""

    name: str = "outside_net"
    width: Count = 4
    """Units of the hidden layer."""

    def build(self, shape: tuple[int, ...], num_classes: int) -> nn.Module:
        from math import prod

        from torch import nn

        hidden = nn.Linear(prod(shape), self.width)
        return nn.Sequential(nn.Flatten(), hidden, nn.Tanh(), nn.Linear(self.width, num_classes))


class Halving(Solver):
    """Goes half of the way to the image."""

    name: str = "outside_halving"
    tolerance: Positive = 1e-2

    def steps(self, start: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda point, image: (point + image) / 2


class Confidence(Metric):
    """The mean of a power of the largest probability."""

    name: str = "outside_confidence"
    power: Positive = 1.0
    """The power."""

    def compute(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return (outputs.softmax(-1).amax(-1) ** self.power).mean()


class Surprise(TrainingLoss):
    """One minus the probability of the label."""

    name: str = "outside_surprise"

    def each(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return 1 - outputs.softmax(-1).gather(1, labels[:, None])[:, 0]
