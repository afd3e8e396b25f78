"""Workers of a group that do one job together: each calls the same method, and they exchange what they found.

They talk through the first one, over connections of the standard library: torch.distributed takes seconds to load.
"""

from __future__ import annotations

import secrets
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NamedTuple, Protocol

RETRY_S = 0.02  # between attempts to reach the first one


class GangBroken(Exception):
    """Another member is gone."""


class Gang(Protocol):
    """The members of a gang, as one of them sees it."""

    rank: int
    size: int

    def gather(self, mine: Any) -> list[Any]:
        """What every member gave, in order of rank; all must call it. GangBroken if one is gone."""


class Alone:
    """A gang of one."""

    rank, size = 0, 1

    def gather(self, mine: Any) -> list[Any]:
        """What this member gave."""
        return [mine]


class Address(NamedTuple):
    """Where the first member of a gang listens."""

    host: str
    port: int
    key: bytes  # that others must know


class Seat(NamedTuple):
    """A place in a gang that is to meet."""

    rank: int
    size: int
    address: Address | None  # None: of a gang of one


class Door:
    """Where a gang meets: its first member's ear."""

    def __init__(self, host: str) -> None:
        key = secrets.token_bytes()
        self._listener = Listener((host, 0), backlog=64, authkey=key)
        self.address = Address(host, self._listener.address[1], key)

    def admit(self, others: int) -> list[Connection]:
        """Those who come, in order of rank; then it is shut."""
        guests = {}
        for _ in range(others):
            guest = self._listener.accept()
            guests[guest.recv()] = guest
        self._listener.close()
        return [guests[rank] for rank in sorted(guests)]


class Members:
    """A gang of several processes. GangBroken if it cannot meet."""

    def __init__(self, seat: Seat, door: Door | None) -> None:
        """door: of the first one."""
        self.rank, self.size = seat.rank, seat.size
        try:
            if door is not None:
                self._others = door.admit(seat.size - 1)
            else:
                assert seat.address is not None
                self._others = [_reach(seat.address)]
                self._others[0].send(seat.rank)
        except (OSError, EOFError) as error:
            raise GangBroken(f"a gang did not meet: {error!r}") from error

    def gather(self, mine: Any) -> list[Any]:
        """What every member gave, in order of rank."""
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
    """The first one, who listens since before anybody knew the address."""
    while True:
        try:
            return Client((address.host, address.port), authkey=address.key)
        except TimeoutError:  # its backlog is full
            time.sleep(RETRY_S)
