"""The mean of updates without the extremes, in each coordinate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from raysim.algorithms.aggregates.aggregate import Aggregate
from raysim.algorithms.signatures import Tensor


class TrimmedMean(Aggregate):
    """The mean in each coordinate without its largest and smallest values (Yin et al. 2018)."""

    name: str = "trimmed_mean"
    trim: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    """Share of the updates that is left out at each end (beta), rounded down to whole updates. 0: none."""

    def of(self, updates: Tensor, weights: Sequence[float]) -> Tensor:
        n = len(updates)
        out = math.floor(self.trim * n)
        return sum(weights) * updates.sort(dim=0).values[out : n - out].mean(0)
