"""What this machine has for what a run keeps."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from raysim.runs.states import States


class Room(NamedTuple):
    """Bytes of memory and disk, of one machine or of several together."""

    memory: int  # all of it
    free_memory: int
    free_disk: int  # where temporary files go, and where Ray spills to

    def __str__(self) -> str:
        free = f"{decimal(self.free_memory)} of memory are free, and {decimal(self.free_disk)} of disk"
        return f"{free}, where Ray spills what memory cannot hold"


def room() -> Room:
    """Returns what this machine has."""
    return Room(*memory(), shutil.disk_usage(tempfile.gettempdir()).free)


def too_large(states: States, room: Room, *, on_ray: bool = True) -> str | None:
    """Returns why the states of clients cannot be kept there; None if they can.

    on_ray: whether a run may be on Ray, which spills to disk; otherwise all of them are in memory.
    """
    have = room.memory + (room.free_disk if on_ray else 0)
    if states.bytes <= have:
        return None
    where = "memory and free disk" if on_ray else "memory"
    cure = "take fewer clients, a smaller model, or an algorithm whose clients keep less"
    return f"what clients keep must fit, got {states}, and {decimal(have)} of {where}; {cure}"


def memory() -> tuple[int, int]:
    """Returns the bytes of memory of the machine, all of them and those that are available."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # not Linux
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return pages, pages
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return kilobytes["MemTotal"] * 1024, kilobytes["MemAvailable"] * 1024
