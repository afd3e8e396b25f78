"""The base of algorithms that step at the end of a round, as in their papers, or by a buffer of updates, as FedBuff."""

from __future__ import annotations

from typing import Literal

from raysim.algorithms.central import Central
from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.signatures import Arrivals
from raysim.algorithms.staleness import Polynomial, Staleness
from raysim.parts.part import Count
from raysim.terms import Buffer, Round


class Buffered(Central):
    """An algorithm of rounds, which can run asynchronously, too."""

    buffer: Count | None = None
    """How many updates make a server step, as in fedbuff. null: the server steps at the end of a round, and late
    updates are discarded."""
    staleness: Staleness = Polynomial()
    """With `buffer`, the factor S(s) of an update's weight, for its staleness s; by default 1 / sqrt(1 + s)."""

    @property
    def trigger(self) -> Round | Buffer:
        return Round(late="discard") if self.buffer is None else Buffer(self.buffer)

    def factors(self, arrivals: Arrivals) -> list[float]:
        """Returns the factor S(s) of each update; 1 without a buffer."""
        if self.buffer is None:
            return [1.0] * len(arrivals)
        return [self.staleness.of(arrival.staleness) for arrival in arrivals]

    def discounted(self, arrivals: Arrivals, weights: Literal["uniform", "samples"]) -> list[float]:
        """Returns the weight of each update in a mean, times its factor.

        So they sum to less than 1 where updates are stale, and the step is shorter on purpose, as in FedBuff.
        """
        factors = self.factors(arrivals)
        if weights == "uniform":
            return [factor / len(arrivals) for factor in factors]
        return [share * factor for share, factor in zip(by_samples(arrivals), factors, strict=True)]
