"""Which clients can be picked, counted by blocks, and tiers of clients that are about as fast as each other."""

from bisect import bisect_left, bisect_right, insort

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1024  # clients
_FEW = 4096  # clients: so many are kept in a sorted list, where another one is soon put in its place


class Roster:
    """Which clients can be picked: those that are idle and available.

    The k-th of them is found without a look at all clients, of whom there may be millions: by those before it that
    cannot be picked, or, if they are many, by counts of blocks.

    away: those that cannot be picked, ascending; None if they are many.
    """

    def __init__(self, idle: NDArray[np.bool_]) -> None:
        """idle: which clients are idle at first, (clients,). All are available."""
        self._idle, self.idle = _flags(idle)  # to be changed by `move` alone
        self.show(np.ones(len(idle), dtype=bool))

    def show(self, available: NDArray[np.bool_]) -> None:
        """Sets who is available, (clients,)."""
        self._available, _ = _flags(available)
        self._pickable, self._both = _flags(self.idle & available)
        self.size = int(np.count_nonzero(self._both))
        self._count()

    def _count(self) -> None:
        """Lists those that cannot be picked, if they are few, or else counts the others by blocks."""
        clients = len(self._both)
        few = clients - self.size <= min(_FEW, clients // 2)
        self.away: list[int] | None = np.flatnonzero(~self._both).tolist() if few else None
        self._counts = np.add.reduceat(self._both, range(0, clients, _BLOCK), dtype=np.int64)

    def move(self, client: int, *, idle: bool) -> None:
        """Sets whether a client is idle."""
        if idle == self._idle[client]:
            return
        self._idle[client] = idle
        if not self._available[client]:
            return
        self._pickable[client] = idle
        self.size += 1 if idle else -1
        if self.away is None:
            self._counts[client // _BLOCK] += 1 if idle else -1
        elif idle:
            del self.away[bisect_left(self.away, client)]
        elif len(self.away) < _FEW:
            insort(self.away, client)
        else:
            self._count()

    def __contains__(self, client: int) -> bool:
        return 0 <= client < len(self._pickable) and bool(self._pickable[client])

    def all(self) -> NDArray[np.int64]:
        """Returns all clients that can be picked, ascending."""
        return self._both.nonzero()[0]

    def at(self, place: int) -> int:
        """Returns the client at a place of the ascending list that `all` returns."""
        if self.away is not None:
            client = place
            while client != (further := place + bisect_right(self.away, client)):
                client = further
            return client
        ends = np.add.accumulate(self._counts)
        block = int(ends.searchsorted(place, "right"))
        start = block * _BLOCK
        (found,) = self._both[start : start + _BLOCK].nonzero()
        return start + int(found[place - ends[block]])  # counted from the end of its block


def _flags(values: NDArray[np.bool_]) -> tuple[bytearray, NDArray[np.bool_]]:
    """Returns a copy of the values as a bytearray and as an array that share memory. Python reads and writes single
    bytes several times faster than elements of arrays."""
    content = bytearray(values.tobytes())
    return content, np.frombuffer(content, dtype=bool)


class Tiers:
    """Tiers of clients, each of which picks anew when all that it picked are back.

    of: the tier of each client, (clients,), where 0 is the fastest; -1 of those that hold no samples.
    """

    def __init__(self, number: int, samples: NDArray[np.int64], first_delays: NDArray[np.float64]) -> None:
        """number: how many tiers there are. samples: how many each client trains on, (clients,). first_delays: how long
        the first update takes or would take, of each client that holds some."""
        held = np.flatnonzero(samples)
        self.of = np.full(len(samples), -1)
        for tier, members in enumerate(np.array_split(held[np.argsort(first_delays, kind="stable")], number)):
            self.of[members] = tier
        self._under_way = [0] * number

    def waiting(self) -> list[int]:
        """Returns the tiers of which nobody is under way."""
        return [tier for tier, under_way in enumerate(self._under_way) if not under_way]

    def leaves(self, client: int) -> None:
        """Takes note that a client is dispatched."""
        self._under_way[self.of[client]] += 1

    def returns(self, client: int) -> bool:
        """Takes note that a client has arrived, or is lost. Returns whether it was the last one of its tier."""
        tier = self.of[client]
        self._under_way[tier] -= 1
        return not self._under_way[tier]
