"""Cached update calibration (CA2FL).

Wang, Cao, Wu, Chen, Chen, Tackling the data heterogeneity in asynchronous federated learning with cached update
calibration, ICLR 2024, Algorithm 2.

Differences from the paper: none in what is computed. But the cache h_i, which is the last delta of client i, is kept as
that client's state. The client sends the change of its cache, and the server keeps only the mean of all caches.
Messages are as long as the paper's. For d parameters, the N caches of 4d bytes each lie in the object store, which
spills to disk, instead of on the server, and a step needs two sums of the M changes.
"""

from raysim.algorithms.mifa import MIFA
from raysim.algorithms.signatures import Arrivals, Buffer, Direction, Population, Record, ServerTask
from raysim.parts.part import Count


class CA2FL(MIFA):
    """FedBuff, with every step calibrated by the last updates of all clients (Wang et al. 2024)."""

    name: str = "ca2fl"
    buffer: Count = 10
    """How many updates make a server step (M)."""

    @property
    def trigger(self) -> Buffer:
        return Buffer(self.buffer)

    def weigh(self, arrivals: Arrivals, population: Population) -> dict[str, list[float]]:
        return {
            "cached": [1 / population.clients] * len(arrivals),
            "fresh": [times / len(arrivals) for times in _multiplicities(arrivals)],
        }

    def direction(self, state: Record, arrivals: Arrivals, updates: Record, task: ServerTask) -> Direction:
        mean = state["mean"]
        return self.server_lr * (mean + updates["fresh.change"]), {"mean": mean + updates["cached.change"]}


def _multiplicities(arrivals: Arrivals) -> list[float]:
    """Returns how often each update's change counts in sum_i (delta_i - h_i), where h_i is the cache before the step.

    If a client has two updates in a buffer, the second change is relative to the first delta, so the second delta minus
    h_i is the sum of both changes. A change therefore counts once, and once more for each later update of its client.
    """
    clients = [a.client for a in arrivals]
    return [float(clients[place:].count(client)) for place, client in enumerate(clients)]
