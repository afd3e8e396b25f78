"""Policies that weigh up what is known of clients against those of whom nothing is known."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from raysim.parts.part import Fraction
from raysim.world.policies.candidates import Candidates
from raysim.world.policies.policy import Policy


class Exploring(Policy):
    """Some clients are picked for the utility of what they reported last, others because they have not reported yet.

    The part of those others is `explore` at first, times `explore_decay` after each round, but at least
    `explore_least`. They are drawn uniformly. Where there are too few of one sort, more of the other are picked.
    """

    explore: Fraction = 0.9
    """Part of those picked in the first round that are clients that have not reported yet."""
    explore_decay: Fraction = 0.98
    """By what that part is multiplied after each round or, where the world has no rounds, after each server step."""
    explore_least: Fraction = 0.2
    """What that part does not fall below."""

    needs_losses: ClassVar[bool] = True

    @abstractmethod
    def utilities(self, candidates: Candidates) -> NDArray[np.float64]:
        """Returns how useful it is to pick a client, (clients,): at least 0, NaN for one that has not reported yet."""

    @abstractmethod
    def exploit(
        self, known: NDArray[np.int64], utility: NDArray[np.float64], wanted: int, generator: np.random.Generator
    ) -> list[int]:
        """Returns the `wanted` clients to pick for their utility. known: the idle ones that have reported, at
        least as many. utility: of all clients, (clients,); finite for those."""

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> Sequence[int]:
        known = candidates.idle[candidates.reports.known[candidates.idle]]
        unknown = candidates.idle[~candidates.reports.known[candidates.idle]]
        part = max(self.explore * self.explore_decay**candidates.round, self.explore_least)
        exploring = int(part * wanted + generator.random())  # rounded up as often as its fraction says
        exploring = min(max(exploring, wanted - len(known)), len(unknown))
        found: list[int] = generator.choice(unknown, size=exploring, replace=False).tolist()
        exploiting = min(wanted - exploring, len(known))
        if exploiting == 0:
            return found
        utility = np.minimum(self.utilities(candidates), np.finfo(np.float64).max / len(candidates.samples))
        return found + self.exploit(known, utility, exploiting, generator)


def statistical_utility(candidates: Candidates) -> NDArray[np.float64]:
    """Returns |B_i| sqrt(loss_i^2), where B_i are a client's samples, (clients,); NaN for one that has not reported."""
    utility: NDArray[np.float64] = candidates.samples.astype(np.float64) * np.abs(candidates.reports.loss)
    return utility
