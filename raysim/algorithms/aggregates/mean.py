"""The weighted mean of updates, which resists nothing."""

from __future__ import annotations

from collections.abc import Sequence

from raysim.algorithms.aggregates.aggregate import Aggregate
from raysim.algorithms.signatures import Tensor


class Mean(Aggregate):
    """The sum of updates by their weights. Workers sum as they train, so a step keeps no single update."""

    name: str = "mean"

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        return updates.new_tensor(weights) @ updates
