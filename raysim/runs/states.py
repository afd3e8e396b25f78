"""What the states of clients will take in a run, known before it begins, and what this machine has for them."""

import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from rich.filesize import decimal

from raysim.algorithms import Central
from raysim.data import Federation, federate
from raysim.engine.families import family_of
from raysim.parts.process import isolated
from raysim.scenario import Scenario


class States(NamedTuple):
    """The states that clients keep from one update to the next."""

    clients: int  # that may have one when the run ends
    each: int  # bytes of one, without what transforms of messages remember

    @property
    def bytes(self) -> int:
        """The bytes of all of them, in memory, and in a checkpoint on disk."""
        return self.clients * self.each

    def __str__(self) -> str:
        return f"{self.clients:,} clients x {decimal(self.each)} = {decimal(self.bytes)} of states"


def states_of(scenario: Scenario, federation: Federation, worker: Any) -> States | None:
    """Returns what states of clients take; None if they keep none, and for peers. worker: that of the family."""
    if not keeps_states(scenario):
        return None
    first = worker.models.first_client()
    tensors = (*first.algorithm.values(), *first.optimizer.values())
    each = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return States(int(min((federation.samples > 0).sum(), _updates(scenario))), each) if each else None


def keeps_states(scenario: Scenario) -> bool:
    """Whether clients may keep a state, as far as the scenario tells."""
    if not scenario.has_server:
        return False
    return type(scenario.central).client is not Central.client or scenario.local.optimizer.keep


def states(scenario: Scenario) -> States | None:
    """Returns what `states_of` does. It loads the data and the model, if clients may keep states."""
    if not keeps_states(scenario):
        return None
    with isolated(torch=True):
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        return states_of(scenario, federation, family_of(scenario).worker(federation))


def _updates(scenario: Scenario) -> float:
    """Returns how many updates the run uses at most; infinite if its end does not tell."""
    horizon, world = scenario.run.horizon, scenario.world
    size = world.dispatch.size if world.has_rounds else getattr(scenario.central.trigger, "size", None)
    return min(horizon.updates, horizon.rounds * (size or math.inf))


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
