"""Bulyan: Krum again and again, then the values nearest to the median."""

from __future__ import annotations

from collections.abc import Sequence

from raysim.algorithms.aggregates.aggregate import Aggregate
from raysim.algorithms.aggregates.krum import scores
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import Count


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
