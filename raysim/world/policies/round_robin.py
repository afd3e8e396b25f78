"""Clients that take turns."""

import numpy as np

from raysim.world.policies.candidates import Candidates
from raysim.world.policies.policy import Policy


class RoundRobin(Policy):
    """Clients take turns: those that were picked least often come first and, among them, the lowest numbers.

    A client that is away or under way when its turn comes is picked as soon as it can be.
    """

    name: str = "round_robin"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        idle = candidates.idle
        picked: list[int] = idle[candidates.times[idle].argsort(kind="stable")[:wanted]].tolist()
        return picked
