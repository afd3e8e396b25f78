"""What a run needs, known before it begins, and what machines have for it: the states of clients, and what `raysim
doctor` finds out by a process on each node."""

import hashlib
import importlib
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.filesize import decimal

from actors import MissingResources, OnNode, this_machine
from raysim.algorithms import Central
from raysim.data import Federation, federate
from raysim.engine.families import family_of
from raysim.parts.own_code import parts_in
from raysim.parts.process import isolated
from raysim.runs.place import RunPlace
from raysim.runs.record import installed
from raysim.scenario import Scenario
from raysim.version import __version__
from results.location import UnknownLocation, location, reaching

EXAMINED_S = 120.0  # seconds that the examination of all nodes may take


class States(NamedTuple):
    """The states that clients keep from one update to the next."""

    clients: int  # that may have one when the run ends
    each: int  # bytes of one

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
    kept = [first.algorithm, first.optimizer, *(_kept_by_transforms(worker) if _transforms_keep(scenario) else ())]
    each = sum(tensor.numel() * tensor.element_size() for record in kept for tensor in record.values())
    return States(int(min((federation.samples > 0).sum(), _updates(scenario))), each) if each else None


def keeps_states(scenario: Scenario) -> bool:
    """Whether clients may keep a state, as far as the scenario tells."""
    if not scenario.has_server:
        return False
    own = type(scenario.central).client is not Central.client or scenario.central.own_model
    return bool(own or scenario.local.optimizer.keep or _transforms_keep(scenario))


def _transforms_keep(scenario: Scenario) -> bool:
    """Whether transforms of messages keep something of each client."""
    return any(one.keeps for one in (*scenario.uplink, *(scenario.downlink if scenario.sends_each else ())))


def _kept_by_transforms(worker: Any) -> Iterator[Mapping[str, Any]]:
    """Yields what transforms keep of a client after its first messages. It trains a client for one step."""
    from raysim.workers.preflight import transformed

    cost = worker.cost()
    down = cost.down if worker.scenario.sends_each else {}
    for link, transforms, vectors in (("uplink", worker.uplink, cost.up), ("downlink", worker.downlink, down)):
        for found in transformed(link, transforms, vectors):
            yield from found.kept.values()


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


# --- nodes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """What a node has for a run."""

    software: Mapping[str, str | None]  # versions and kinds by name; None of what is not there
    room: Room
    missing: tuple[str, ...]  # of the files and folders that were asked about


@dataclass(frozen=True)
class Examination:
    """Examines the node on which it is called."""

    paths: tuple[str, ...]  # that are looked for

    def __call__(self) -> Node:
        import torch

        machine = this_machine()
        software = {
            "Python": platform.python_version(),
            "raysim": f"{__version__} {_code()}",
            "Ray": installed("ray"),
            "torch": machine.torch,
            "CUDA": torch.version.cuda,
            "NumPy": machine.numpy,
            "CPU": f"{machine.vendor} {machine.capability}",
        }
        return Node(software, room(), tuple(path for path in self.paths if not _is_there(path)))


def examined(scenario: Scenario, *, inline: bool, address: str | None) -> tuple[list[OnNode[Node]], str | None]:
    """Looks at the nodes of a cluster, or at this process, and finds out whether there is room for the scenario's run.

    address: as in `raysim.run`. Returns the nodes, and why there is no room; None if there is. Raises MissingResources
    if no cluster answers.
    """
    blocks = (scenario.data, scenario.server_data, scenario.public, scenario.model)
    paths = dict.fromkeys(str(path) for block in blocks for part in parts_in(block) for path in part.reads())
    examination = Examination(tuple(paths))
    if inline:
        return [OnNode("this process", True, {}, examination())], None
    place = RunPlace(address=address)
    place.connect([scenario])
    from actors.placement import on_every_node

    nodes = on_every_node(examination, EXAMINED_S)
    try:
        with place.hired(scenario):
            return nodes, None
    except MissingResources as missing:
        return nodes, str(missing)


def differences(nodes: Sequence[OnNode[Node]]) -> Iterator[str]:
    """Yields in which software nodes differ."""
    known = [(place.address, place.answer.software) for place in nodes if place.answer]
    for what in known[0][1] if known else ():
        having: dict[str | None, list[str]] = {}
        for address, software in known:
            having.setdefault(software[what], []).append(address)
        if len(having) > 1:
            text = ", ".join(f"{value or 'none'} on {' and '.join(where[:3])}" for value, where in having.items())
            yield f"{what}: {text}; the last bits may differ, and other versions may not work together"


def _is_there(path: str) -> bool:
    """Returns whether a file or a folder can be reached from here; it may have a URI."""
    try:
        found = location(path).expanduser()
        with reaching():
            return found.exists()
    except (OSError, UnknownLocation):  # no credentials on this node, or no library
        return False


def _code() -> str:
    """Returns a hash of raysim's code, because two copies may differ and have one version."""
    hashed = hashlib.sha256()
    for package in ("raysim", "actors", "results"):
        root = Path(str(importlib.import_module(package).__file__)).parent
        for file in sorted(root.rglob("*.py")):
            hashed.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return hashed.hexdigest()[:8]
