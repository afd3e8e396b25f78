"""Workers of a group that do one job together: each calls the same method, and they exchange what they found.

Transport is gloo, through torch.distributed, which is loaded where a gang of several meets.
"""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

SILENCE_S = 7 * 24 * 3600  # how long a member waits for the others; one that dies is noticed at once


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


class Seat(NamedTuple):
    """A place in a gang that is to meet. address: where rank 0 listens, host:port; a gang has one of its own."""

    rank: int
    size: int
    address: str


class Members:
    """A gang of several processes."""

    def __init__(self, seat: Seat) -> None:
        import torch.distributed as dist

        self.seat = seat
        self.rank, self.size = seat.rank, seat.size
        try:
            dist.init_process_group(
                "gloo",
                init_method=f"tcp://{seat.address}",
                rank=seat.rank,
                world_size=seat.size,
                timeout=timedelta(seconds=SILENCE_S),
            )
        except (RuntimeError, ValueError) as error:
            raise GangBroken(f"the gang at {seat.address} did not meet: {error}") from error

    def gather(self, mine: Any) -> list[Any]:
        """What every member gave, in order of rank."""
        import torch.distributed as dist

        everything: list[Any] = [None] * self.size
        try:
            dist.all_gather_object(everything, mine)
        except RuntimeError as error:
            raise GangBroken(f"a member of the gang at {self.seat.address} is gone: {error}") from error
        return everything


def free_address(host: str) -> str:
    """host:port, of a port that nobody listens on now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return f"[{host}]:{probe.getsockname()[1]}" if ":" in host else f"{host}:{probe.getsockname()[1]}"
