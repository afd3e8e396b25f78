"""How a server moves its model along a direction that clients' updates give: the base of all rules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from raysim.algorithms.signatures import Tensor
from raysim.parts.part import NonNegative, Positive
from raysim.schedules import Schedulable
from raysim.terms import Record


class ServerRule(Schedulable):
    """A rule by which a server moves. A subclass adds its `name`.

    Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, Adaptive federated optimization, ICLR 2021: the
    direction is a step's aggregated update, and takes the place of the negative gradient. BatchNorm's statistics are
    not moved by rules.
    """

    name: str
    lr: Positive = 1.0
    """Learning rate of the server (eta)."""
    delay_adaptive: Literal["none", "scaled", "capped"] = "none"
    """How a step's learning rate depends on tau, the largest staleness of its updates. none: it is `lr`. scaled: lr /
    tau if tau is above `delay_threshold`, else lr. capped: min(lr, 1 / tau). See FADAS (Wang et al. 2024), whose
    authors count staleness in server steps, which is `world.staleness: versions`."""
    delay_threshold: NonNegative = 1.0
    """Largest tau at which `delay_adaptive: scaled` leaves the learning rate as it is."""

    def init(self, w: Tensor) -> Record:
        """Returns what the rule keeps from one step to the next, at first. w: the parameters that it moves, (d,)."""
        return {}

    @abstractmethod
    def move(self, kept: Record, w: Tensor, direction: Tensor, lr: float) -> tuple[Tensor, Record]:
        """Returns the next parameters, (d,), and what the rule keeps next.

        kept: what `init` or the last move returned. direction: where to move, (d,). lr: the
        learning rate of this step, as `rate` gives it.
        """

    def rate(self, staleness: float) -> float:
        """Returns the learning rate of a step. staleness: the largest among its updates."""
        if self.delay_adaptive == "scaled" and staleness > self.delay_threshold:
            return self.lr / staleness
        if self.delay_adaptive == "capped" and staleness > 0:
            return min(self.lr, 1 / staleness)
        return self.lr
