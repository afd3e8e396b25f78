"""Gangs: workers of a group that do one job together. Each carries out the same request, and they exchange results."""

from typing import Any, NamedTuple


class Gang:
    """The members of a gang, as one of them sees it. This one is alone."""

    rank, size = 0, 1

    def gather(self, mine: Any) -> list[Any]:
        """Returns what every member passed, in order of rank. All members must call it."""
        return [mine]


class Seat(NamedTuple):
    """A worker's place in a gang of several."""

    rank: int
    members: tuple[Any, ...]  # Ray's handles of all of their actors, in order of rank
