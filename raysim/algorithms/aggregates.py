"""How a server makes one update of many: aggregates, of which most resist some wrong updates. To add one, put it into
`AGGREGATES`."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from raysim.algorithms.signatures import Tensor
from raysim.parts.lazy import torch
from raysim.parts.part import Count, OneOf, Positive
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
            text = f"algorithm.aggregate: {self.name} needs at least {self.least} updates in a step, got {n}; pick more"
            raise ValueError(f"{text} clients, keep late updates, or lower its numbers")


class Mean(Aggregate):
    """The sum of updates by their weights. Workers sum as they train, so a step keeps no single update."""

    name: str = "mean"

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        return updates.new_tensor(weights) @ updates


class ClipNorm(Aggregate):
    """The weighted sum of updates, each scaled down to a largest norm (Sun, Kairouz, Suresh, McMahan 2019)."""

    name: str = "clip_norm"
    max: Positive
    """The largest norm of an update."""

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        norms: Tensor = updates.norm(dim=1)
        factors = (self.max / norms).clamp(max=1.0)  # a norm of 0 gives inf, which is clamped
        return updates.new_tensor(weights).mul(factors) @ updates

    def flops(self, n: int, d: int) -> float:
        return 2.0 * n * d


class Median(Aggregate):
    """The median in each coordinate; of an even number, the mean of the middle two (Yin et al. 2018)."""

    name: str = "median"

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        ordered, n = updates.sort(dim=0).values, len(updates)
        return sum(weights) * (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


class TrimmedMean(Aggregate):
    """The mean in each coordinate without its largest and smallest values (Yin et al. 2018)."""

    name: str = "trimmed_mean"
    trim: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    """Share of the updates that is left out at each end (beta), rounded down to whole updates. 0: none."""

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        n = len(updates)
        out = math.floor(self.trim * n)
        return sum(weights) * updates.sort(dim=0).values[out : n - out].mean(0)


class Krum(Aggregate):
    """The mean of the updates with the smallest distances to others (Blanchard et al. 2017).

    With n updates, the score of one is the sum of its squared distances to the n - byzantine - 2 nearest others.
    """

    name: str = "krum"
    byzantine: Count
    """How many of a step's updates may be wrong (f). A step needs at least 2 f + 3 updates."""
    keep: Count = 1
    """How many updates are averaged (m): with 1 it is Krum, with more multi-Krum."""

    @property
    def least(self) -> int:
        return max(2 * self.byzantine + 3, self.keep)

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        chosen = scores(updates, self.byzantine).sort(stable=True).indices[: self.keep]
        return sum(weights) * updates[chosen].mean(0)

    def flops(self, n: int, d: int) -> float:
        return 3.0 * n * n * d


def scores(updates: Tensor, byzantine: int) -> Tensor:
    """Returns the score of each update, (n,): the smaller, the nearer are others. updates: (n, d), for n > byzantine.

    A step of Bulyan scores few updates; each then counts at least one neighbour.
    """
    # Not by matrix products, which lose small distances between long updates.
    distances = torch.stack([(updates - one).square().sum(1) for one in updates])
    nearest = max(len(updates) - byzantine - 2, 1)
    return distances.sort(dim=1).values[:, 1 : nearest + 1].sum(1)  # the nearest of all is the update itself


class Bulyan(Aggregate):
    """Krum picks n - 2 f updates, whose n - 4 f values nearest to the median are averaged (El Mhamdi et al. 2018)."""

    name: str = "bulyan"
    byzantine: Count
    """How many of a step's updates may be wrong (f). A step needs at least 4 f + 3 updates."""

    @property
    def least(self) -> int:
        return 4 * self.byzantine + 3

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        left, picked = list(range(len(updates))), list[int]()
        while len(picked) < len(updates) - 2 * self.byzantine:
            best = int(scores(updates[left], self.byzantine).argmin())
            picked.append(left.pop(best))
        chosen = updates[sorted(picked)].sort(dim=0).values
        middle = (chosen[(len(chosen) - 1) // 2] + chosen[len(chosen) // 2]) / 2
        nearest = (chosen - middle).abs().sort(dim=0, stable=True).indices[: len(chosen) - 2 * self.byzantine]
        return sum(weights) * chosen.gather(0, nearest).mean(0)

    def flops(self, n: int, d: int) -> float:
        return 3.0 * n * n * d * (n - 2 * self.byzantine)


class Majority(Aggregate):
    """The sign of the weighted sum in each coordinate, of which 0 has that of 1 (Bernstein et al. 2018).

    With `uplink: [{name: sign, scale: none}]`, it is the majority vote of signSGD, if all weights are equal.
    """

    name: str = "majority"

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        total = updates.new_tensor(weights) @ updates
        return total.where(total.isnan(), (total >= 0) * 2.0 - 1.0)


AGGREGATES: tuple[type[Aggregate], ...] = (Mean, ClipNorm, Median, TrimmedMean, Krum, Bulyan, Majority)
AnAggregate = Annotated[Aggregate, OneOf(AGGREGATES)]
