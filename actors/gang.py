"""Gangs: workers of a group that do one job together. Each carries out the same request, and they exchange results.

All members connect to the first one, over connections of the standard library, because torch.distributed takes seconds
to load.
"""

import os
import secrets
import socket
import time
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from queue import Empty, SimpleQueue
from threading import Thread, Timer
from typing import Any, NamedTuple

RETRY_S = 0.02  # seconds between attempts to reach the first member
JOIN_S = 120.0  # seconds that the members may take to meet
GREET_S = 5.0  # seconds that a guest may take to prove that it knows the key


class GangBroken(Exception):
    """Another member of the gang has died, or cannot be reached."""


class Gang:
    """The members of a gang, as one of them sees it. This one is alone."""

    rank, size = 0, 1

    def gather(self, mine: Any) -> list[Any]:
        """Returns what every member passed, in order of rank. All members must call it.

        Raises GangBroken if a member is gone.
        """
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
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=64)
        self.address = Address(host, self._socket.getsockname()[1], key)

    def admit(self, others: int, within_s: float = JOIN_S) -> list[Connection]:
        """Waits for so many other members, and returns the connections to them, in order of rank. Then it is closed.

        A guest that does not know the key is a stranger, and is turned away; none keeps another one waiting. Raises
        TimeoutError if the members are not there in time.
        """
        guests: dict[int, Connection] = {}
        greeted: SimpleQueue[tuple[int, Connection]] = SimpleQueue()
        deadline = time.monotonic() + within_s
        Thread(target=self._accept, args=(greeted,), daemon=True).start()
        try:
            while len(guests) < others:
                rank, connection = greeted.get(timeout=max(deadline - time.monotonic(), 0.001))
                guests[rank] = connection
        except Empty:
            raise TimeoutError(f"{others - len(guests)} of {others} members did not come in {within_s:g} s") from None
        finally:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread that accepts
            self._socket.close()
        return [guests[rank] for rank in sorted(guests)]

    def _accept(self, greeted: SimpleQueue[tuple[int, Connection]]) -> None:
        with suppress(OSError):  # the door is closed
            while True:
                Thread(target=self._greet, args=(self._socket.accept()[0], greeted), daemon=True).start()

    def _greet(self, guest: socket.socket, greeted: SimpleQueue[tuple[int, Connection]]) -> None:
        """Passes on the connection to a guest that proves in time that it knows the key, and closes all others."""
        connection = Connection(os.dup(guest.fileno()))
        limit = Timer(GREET_S, _hang_up, (guest,))  # one for all that it sends, be it byte by byte
        limit.daemon = True
        limit.start()
        try:
            deliver_challenge(connection, self.address.key)
            answer_challenge(connection, self.address.key)
            greeted.put((connection.recv(), connection))
        except (AuthenticationError, OSError, EOFError):
            connection.close()
        finally:
            limit.cancel()
            guest.close()


def _hang_up(guest: socket.socket) -> None:
    with suppress(OSError):  # it has gone
        guest.shutdown(socket.SHUT_RDWR)


class Members(Gang):
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
        except (OSError, EOFError, AuthenticationError) as error:
            raise GangBroken(f"the members of a gang could not meet: {error!r}") from error

    def gather(self, mine: Any) -> list[Any]:
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
    """Connects to the first member, which has listened since before it gave its address away."""
    deadline = time.monotonic() + JOIN_S
    while True:
        try:
            return Client((address.host, address.port), authkey=address.key)
        except TimeoutError:  # too many members connect at the same time
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
