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
        self._idle, self.idle = _flags(idle)  # to be changed by `move` alone
        self.show(np.ones(len(idle), dtype=bool))

    def show(self, available: NDArray[np.bool_]) -> None:
        """Sets who is available, (clients,)."""
        self._available, _ = _flags(available)
        self._pickable, self._both = _flags(self.idle & available)
        self._counts = np.add.reduceat(self._both, range(0, len(available), _BLOCK), dtype=np.int64)
        self.size = int(self._counts.sum())

    def move(self, client: int, *, idle: bool) -> None:
        """Sets whether a client is idle."""
        if idle == self._idle[client]:
            return
        self._idle[client] = idle
        if self._available[client]:
            change = 1 if idle else -1
            self._pickable[client] = idle
            self._counts[client // _BLOCK] += change
            self.size += change

    def __contains__(self, client: int) -> bool:
        return 0 <= client < len(self._pickable) and bool(self._pickable[client])

    def all(self) -> NDArray[np.int64]:
        """Returns all clients that can be picked, ascending."""
        return self._both.nonzero()[0]

    def at(self, places: Iterable[int]) -> list[int]:
        """Returns the clients at these places of the ascending list that `all` returns."""
        ends = np.add.accumulate(self._counts)
        clients = []
        for place in places:
            block = int(ends.searchsorted(place, "right"))
            start = block * _BLOCK
            (found,) = self._both[start : start + _BLOCK].nonzero()
            clients.append(start + int(found[place - ends[block]]))  # counted from the end of its block
        return clients


def _flags(values: NDArray[np.bool_]) -> tuple[bytearray, NDArray[np.bool_]]:
    """Returns a copy of the values as a bytearray and as an array that share memory. Python reads and writes single
    bytes several times faster than elements of arrays."""
    content = bytearray(values.tobytes())
    return content, np.frombuffer(content, dtype=bool)
