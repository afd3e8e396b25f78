"""Gangs: workers of a group that do one job together. Each carries out the same request, and they exchange results.

All members connect to the first one, over connections of the standard library, because torch.distributed takes seconds
to load.
"""

from __future__ import annotations

import secrets
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NamedTuple, Protocol

RETRY_S = 0.02  # between attempts to reach the first member


class GangBroken(Exception):
    """Another member of the gang has died, or cannot be reached."""


class Gang(Protocol):
    """The members of a gang, as one of them sees it."""

    rank: int
    size: int

    def gather(self, mine: Any) -> list[Any]:
        """Returns what every member passed, in order of rank. All members must call it.

        Raises GangBroken if a member is gone.
        """


class Alone:
    """A gang of one."""

    rank, size = 0, 1

    def gather(self, mine: Any) -> list[Any]:
        """Returns what this member passed, as the only item."""
        return [mine]


class Address(NamedTuple):
    """Where the first member of a gang listens."""

    host: str
    port: int
    key: bytes  # secret that the other members need to connect


class Seat(NamedTuple):
    """A worker's place in a gang, and where the gang meets."""

    rank: int
    size: int
    address: Address | None  # None for a gang of one


class Door:
    """Where a gang meets: the first member listens here for the others."""

    def __init__(self, host: str) -> None:
        key = secrets.token_bytes()
        self._listener = Listener((host, 0), backlog=64, authkey=key)
        self.address = Address(host, self._listener.address[1], key)

    def admit(self, others: int) -> list[Connection]:
        """Waits for so many other members, and returns the connections to them, in order of rank. Then it is closed."""
        guests = {}
        for _ in range(others):
            guest = self._listener.accept()
            guests[guest.recv()] = guest
        self._listener.close()
        return [guests[rank] for rank in sorted(guests)]


class Members:
    """A gang of several processes, as one of them sees it. Raises GangBroken if the members cannot meet."""

    def __init__(self, seat: Seat, door: Door | None) -> None:
        """door: the first member's own door; None for all others."""
        self.rank, self.size = seat.rank, seat.size
        try:
            if door is not None:
                self._others = door.admit(seat.size - 1)
            else:
                assert seat.address is not None
                self._others = [_reach(seat.address)]
                self._others[0].send(seat.rank)
        except (OSError, EOFError) as error:
            raise GangBroken(f"the members of a gang could not meet: {error!r}") from error

    def gather(self, mine: Any) -> list[Any]:
        """Returns what every member passed, in order of rank. Raises GangBroken if one is gone."""
        try:
            if self.rank:
                self._others[0].send(mine)
                everything: list[Any] = self._others[0].recv()
                return everything
            everything = [mine, *(other.recv() for other in self._others)]
            for other in self._others:
                other.send(everything)
            return everything
        except (OSError, EOFError) as error:
            raise GangBroken(f"a member of a gang is gone: {error!r}") from error


def _reach(address: Address) -> Connection:
    """Connects to the first member. It has listened since before anybody knew its address."""
    while True:
        try:
            return Client((address.host, address.port), authkey=address.key)
        except TimeoutError:  # too many members connect at the same time
            time.sleep(RETRY_S)
