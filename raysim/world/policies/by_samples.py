"""Clients that are picked in proportion to their samples."""

import numpy as np

from raysim.world.policies.candidates import Candidates
from raysim.world.policies.policy import Policy
from raysim.world.policies.weighted import draw


class BySamples(Policy):
    """Clients with more samples are picked more often: in each draw, with probability in proportion to samples."""

    name: str = "by_samples"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        return draw(candidates.idle, candidates.samples, wanted, generator)
