"""The median of updates in each coordinate."""

from __future__ import annotations

from collections.abc import Sequence

from raysim.algorithms.aggregates.aggregate import Aggregate
from raysim.algorithms.signatures import Tensor


class Median(Aggregate):
    """The median in each coordinate; of an even number, the mean of the middle two (Yin et al. 2018)."""

    name: str = "median"

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        ordered, n = updates.sort(dim=0).values, len(updates)
        return sum(weights) * (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
