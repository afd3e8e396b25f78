"""Clients whose training is useful and not likely to be stale."""

import numpy as np
from numpy.typing import NDArray

from raysim.parts.part import NonNegative
from raysim.world.policies.candidates import Candidates
from raysim.world.policies.exploring import Exploring, statistical_utility


class Pisces(Exploring):
    """Clients with large losses, many samples and little staleness are picked; it is meant for `concurrency`.

    Jiang, Wang, Li, Li, Pisces: efficient federated learning via guided asynchronous training, SoCC 2022. The utility
    of a client is |B| sqrt(loss^2) / (staleness + 1)^beta, and those with the most are picked, the lowest numbers
    among equals. loss is that of the first mini-batch, before training, where the paper has the root mean square over
    samples; staleness is that of the client's last update, where the paper has a mean of its last ones. The removal of
    clients whose losses are outliers is left out, and so is the pace of aggregation, which is the algorithm's matter.
    """

    name: str = "pisces"
    beta: NonNegative = 0.5
    """How much less useful a stale client is."""

    def utilities(self, candidates: Candidates) -> NDArray[np.float64]:
        discount: NDArray[np.float64] = (candidates.reports.staleness + 1) ** self.beta
        return statistical_utility(candidates) / discount

    def exploit(
        self, known: NDArray[np.int64], utility: NDArray[np.float64], wanted: int, generator: np.random.Generator
    ) -> list[int]:
        best: list[int] = known[(-utility[known]).argsort(kind="stable")[:wanted]].tolist()
        return best
