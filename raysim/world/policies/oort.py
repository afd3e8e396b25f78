"""Clients whose training is useful and quick."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from raysim.parts.part import Fraction, NonNegative, Positive, Unit
from raysim.world.policies.candidates import Candidates
from raysim.world.policies.exploring import Exploring, statistical_utility
from raysim.world.policies.weighted import draw


class Oort(Exploring):
    """Clients with large losses, many samples and short delays are picked more often.

    Lai, Zhu, Madhyastha, Chowdhury, Oort: efficient federated learning via guided participant selection, OSDI 2021,
    algorithm 1. In round R, the utility of a client that last took part in round L and took t is

        (|B| sqrt(loss^2) + sqrt(0.1 log R / L)) * (T / t)^alpha, the last factor only if t > T.

    Of those whose utility is at least `cutoff` times that of the last one wanted, clients are drawn in proportion to
    it. loss is that of the first mini-batch, before training, where the paper has the root mean square over samples. T
    is given and stays; the paper's pacer, which raises it, and its clipping and removal of outliers are left out. Who
    has not reported yet is drawn uniformly, for nothing is known of its speed.
    """

    name: str = "oort"
    preferred: Annotated[Positive, Unit("virtual time")] | None = None
    """T: a client that took longer is less useful. null: all times are as good."""
    alpha: NonNegative = 2.0
    """How much less useful a slow client is."""
    cutoff: Fraction = 0.95
    """c: which part of the utility of the last one wanted a client must have."""

    def utilities(self, candidates: Candidates) -> NDArray[np.float64]:
        reports, now = candidates.reports, candidates.round + 1  # rounds count from 1
        utility: NDArray[np.float64] = statistical_utility(candidates)
        utility = utility + np.sqrt(0.1 * np.log(now) / (reports.round + 1))
        if self.preferred is not None:
            utility = utility / np.maximum(reports.duration / self.preferred, 1.0) ** self.alpha
        return utility

    def exploit(
        self, known: NDArray[np.int64], utility: NDArray[np.float64], wanted: int, generator: np.random.Generator
    ) -> list[int]:
        last = np.sort(utility[known])[-wanted]
        good = known[utility[known] >= self.cutoff * last]
        return draw(good, np.maximum(utility, np.finfo(np.float64).tiny), wanted, generator)
