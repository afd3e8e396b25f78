"""What `raysim doctor` finds out before a run: what each node has, found out by a process on it."""

import hashlib
import importlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors import MissingResources, OnNode, this_machine
from raysim.parts.own_code import parts_in
from raysim.runs.place import connect, hired
from raysim.runs.record import installed
from raysim.runs.states import Room, room
from raysim.scenario import Scenario
from raysim.version import __version__
from results.location import UnknownLocation, location, reaching

EXAMINED_S = 120.0  # seconds that the examination of all nodes may take


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
    connect([scenario], address)
    from actors.nodes import on_every_node

    nodes = on_every_node(examination, EXAMINED_S)
    try:
        with hired(scenario):
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
