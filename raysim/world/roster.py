"""Which clients can be picked, counted by blocks."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1024  # clients


class Roster:
    """Which clients can be picked: those that are idle and available.

    They are counted by blocks, so that the k-th of them is found without a look at all clients, of whom there may be
    millions.
    """

    def __init__(self, idle: NDArray[np.bool_]) -> None:
        """idle: which clients are idle at first, (clients,). All are available."""
        self.idle = idle.copy()  # to be changed by `move` alone
        self.show(np.ones(len(idle), dtype=bool))

    def show(self, available: NDArray[np.bool_]) -> None:
        """Sets who is available, (clients,)."""
        self._available = available
        self._counts = np.add.reduceat(self.idle & available, range(0, len(available), _BLOCK), dtype=np.int64)
        self.size = int(self._counts.sum())

    def move(self, client: int, *, idle: bool) -> None:
        """Sets whether a client is idle."""
        change = int(idle) - int(self.idle[client])
        self.idle[client] = idle
        if change and self._available[client]:
            self._counts[client // _BLOCK] += change
            self.size += change

    def __contains__(self, client: int) -> bool:
        return 0 <= client < len(self.idle) and bool(self.idle[client] and self._available[client])

    def all(self) -> NDArray[np.int64]:
        """Returns all of them, ascending."""
        return np.flatnonzero(self.idle & self._available)

    def at(self, places: Iterable[int]) -> list[int]:
        """Returns those at the places, which count from 0 in ascending order of clients."""
        ends = self._counts.cumsum()
        clients = []
        for place in places:
            block = int(ends.searchsorted(place, side="right"))
            start, before = block * _BLOCK, int(ends[block] - self._counts[block])
            inside = slice(start, start + _BLOCK)
            (found,) = (self.idle[inside] & self._available[inside]).nonzero()
            clients.append(start + int(found[place - before]))
        return clients
