"""Clients that are picked evenly from groups of similar ones."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raysim.parts.errors import BadInput
from raysim.parts.part import Count
from raysim.world.policies.policy import Candidates, Policy


class Stratified(Policy):
    """Equal numbers of clients are picked from each of several strata, and uniformly at random within a stratum.

    If the numbers cannot be equal, it is drawn anew at each pick which strata give one more. A stratum with too few
    idle clients gives all, and the others more.
    """

    name: str = "stratified"
    by: Literal["label", "size"] = "label"
    """label: a stratum is of all clients with the same most frequent label, the lowest one if there are several.
    size: strata are of equally many clients, from those with the fewest samples to those with the most."""
    strata: Count = 4
    """Number of strata by size. By label, there is one for each label."""

    @property
    def needs_labels(self) -> bool:
        return self.by == "label"

    def pick(self, candidates: Candidates, wanted: int, generator: np.random.Generator) -> list[int]:
        shuffled = generator.permutation(candidates.idle)
        stratum = self.strata_of(candidates)[shuffled]
        grouped = stratum.argsort(kind="stable")
        starts = np.searchsorted(stratum[grouped], stratum[grouped])  # of each one's stratum among those grouped
        turn = np.empty_like(grouped)
        turn[grouped] = np.arange(len(grouped)) - starts  # how many of its stratum go before it
        order = generator.permutation(int(stratum.max()) + 1)
        picked: list[int] = shuffled[np.lexsort((order[stratum], turn))[:wanted]].tolist()
        return picked

    def strata_of(self, candidates: Candidates) -> NDArray[np.int64]:
        """Returns the number of each client's stratum, (clients,)."""
        if self.by == "label":
            assert candidates.labels is not None
            if candidates.labels.shape[1] == 1:
                raise BadInput("world.dispatch.policy.by", "must be size, for clients' samples have no labels, or one")
            most: NDArray[np.int64] = candidates.labels.argmax(axis=1)
            return most
        held = np.flatnonzero(candidates.samples)
        strata = np.zeros(len(candidates.samples), dtype=np.int64)
        strata[held[candidates.samples[held].argsort(kind="stable")]] = np.arange(len(held)) * self.strata // len(held)
        return strata

    def problems(self, clients: int, classes: int | None) -> Iterator[tuple[str, str]]:
        if self.by == "label" and classes == 0:
            yield "by", "must be size, for the data have no labels, got label"
        if self.by == "size" and self.strata > clients:
            yield "strata", f"must be at most the number of clients, {clients}, got {self.strata}; lower it"
