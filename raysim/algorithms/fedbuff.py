"""Buffered asynchronous aggregation (FedBuff).

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba, Federated learning with buffered asynchronous aggregation, AISTATS
2022, Algorithms 1 and 2.

Differences from the paper: deltas have the opposite sign (local minus received model), and are added. A client may
contribute twice to one buffer, because it can be picked again while its update waits in the buffer.
"""

from functools import cache

from raysim.algorithms.moving import Aggregating
from raysim.algorithms.signatures import Arrivals, Buffer, Direction, Population, Record, ServerTask
from raysim.algorithms.staleness import Polynomial, Staleness
from raysim.parts.part import Count, Positive


class FedBuff(Aggregating):
    """The server steps as soon as K updates have arrived; stale updates weigh less (Nguyen et al. 2022)."""

    name: str = "fedbuff"
    buffer: Count = 10
    """How many updates make a server step (K)."""
    server_lr: Positive = 1.0
    """Factor of the server's step (eta_g), with which its direction is multiplied."""
    staleness: Staleness = Polynomial()
    """The factor S(s) of an update's weight, for its staleness s; by default 1 / sqrt(1 + s)."""

    @property
    def trigger(self) -> Buffer:
        return Buffer(self.buffer)

    def weigh(self, arrivals: Arrivals, population: Population) -> list[float]:
        # Divided by K and not by the sum of the factors: a buffer of stale updates makes a shorter step on purpose.
        factor = cache(self.staleness.of)
        return [factor(a.staleness) / self.buffer for a in arrivals]

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        return self.server_lr * updates["delta"], {}
