"""How a server makes one update of many: the base of aggregates that resist some wrong updates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from raysim.algorithms.signatures import Tensor
from raysim.schedules import Schedulable


class Aggregate(Schedulable):
    """An aggregate of a step's updates. A subclass adds its `name`."""

    name: str

    @property
    def least(self) -> int:
        """The least number of updates that it can aggregate."""
        return 1

    @abstractmethod
    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        """Returns the aggregate, (d,), that takes the place of the weighted sum.

        updates: (n, d), in the order of dispatch; n is at least `least`. weights: those of the weighted sum, which need
        not sum to 1. An aggregate that ignores them multiplies what it found by their sum.
        """

    def flops(self, n: int, d: int) -> float:
        """Returns the arithmetic besides n * d multiplications and additions, for the column `server_flops`."""
        return 0.0

    def require(self, n: int) -> None:
        """Raises ValueError if there are too few updates."""
        if n < self.least:
            raise ValueError(
                f"algorithm.aggregate: {self.name} needs at least {self.least} updates in a step, got {n}; pick more "
                "clients, keep late updates, or lower its numbers"
            )
