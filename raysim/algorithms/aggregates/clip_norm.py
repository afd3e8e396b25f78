"""The weighted mean of updates that are clipped."""

from __future__ import annotations

from collections.abc import Sequence

from raysim.algorithms.aggregates.aggregate import Aggregate
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import Positive


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
