"""Krum and multi-Krum: the updates that have the nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from raysim.algorithms.aggregates.aggregate import Aggregate
from raysim.algorithms.signatures import Tensor
from raysim.parts.part import Count


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
    import torch

    # Not by matrix products, which lose small distances between long updates.
    distances = torch.stack([(updates - one).square().sum(1) for one in updates])
    nearest = max(len(updates) - byzantine - 2, 1)
    return distances.sort(dim=1).values[:, 1 : nearest + 1].sum(1)  # the nearest of all is the update itself
