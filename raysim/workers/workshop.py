"""An actor's state before it has data: the scenario and a device. A set-up then replaces it by a worker."""

from __future__ import annotations

import fcntl
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from actors import Provider, Query, Setup, Value
from raysim.data import Federation
from raysim.data.cache import cache_folder
from raysim.models.part import ModelPart
from raysim.scenario import Scenario
from raysim.scenario.dependencies import files_in, fingerprint
from raysim.workers.device import open_device, prefer_deterministic, stand_in
from results.location import is_local, location

if TYPE_CHECKING:
    import torch

    from raysim.workers.client import ClientWorker
    from raysim.workers.peers import PeersWorker
    from raysim.workers.server import ServerWorker


@dataclass(frozen=True)
class OpenWorkshop:
    """The factory of actors: each actor calls it once, to make its workshop."""

    scenario: Scenario
    gpus: float  # share of a GPU that it may use; 0: it uses the CPU

    def __call__(self) -> Workshop:
        return Workshop(self.scenario, self.gpus)


class Workshop:
    """Holds the scenario and the device of an actor, and has set up torch."""

    def __init__(self, scenario: Scenario, gpus: float) -> None:
        import torch

        torch.set_num_threads(scenario.resources.threads)
        self.scenario = scenario
        asked = scenario.resources
        if (asked.gpus_per_client or asked.gpus_per_aggregator) and not stand_in():
            prefer_deterministic()
        self.device = torch.device(open_device(gpus).kind)


# --- set-ups ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Become(Setup):
    """Replaces a workshop by a worker that has the data, and on its node the files of the model."""

    federation: Value[Federation]
    loader: Provider | None = None  # the worker that loads the data; None if it is on this machine

    def given(self, worker: Workshop) -> tuple[Scenario, Federation, torch.device]:
        return with_files(worker.scenario, self.loader), self.federation.content, worker.device


@dataclass(frozen=True)
class BecomeClient(_Become):
    """Replaces a workshop by a worker that trains and evaluates clients."""

    def build(self, worker: Workshop) -> ClientWorker:
        from raysim.workers.client import ClientWorker

        return ClientWorker(*self.given(worker))


@dataclass(frozen=True)
class BecomeServer(_Become):
    """Replaces a workshop by a worker that does the server's steps."""

    def build(self, worker: Workshop) -> ServerWorker:
        from raysim.workers.server import ServerWorker

        return ServerWorker(*self.given(worker))


@dataclass(frozen=True)
class BecomePeers(_Become):
    """Replaces a workshop by a worker that mixes, trains and evaluates peers."""

    def build(self, worker: Workshop) -> PeersWorker:
        from raysim.workers.peers import PeersWorker

        return PeersWorker(*self.given(worker))


# --- files of models, brought to nodes that do not have them ----------------------------------------------------------

PART = 2**26  # bytes that are sent at a time


class Found(NamedTuple):
    """A file or folder on the node where the data are loaded."""

    where: Path
    fingerprint: str
    sizes: dict[str, int]  # by name of the file in the folder


@dataclass(frozen=True)
class FindRequest(Query[Found | None]):
    """Looks for a file or folder. It gives None if there is none."""

    path: str

    name = "find files"

    def ask(self, worker: object) -> Found | None:
        where = location(self.path).expanduser().absolute()
        mark = fingerprint(where)
        return Found(where, mark, {name: file.stat().st_size for name, file in files_in(where)}) if mark else None


@dataclass(frozen=True)
class ReadRequest(Query[bytes]):
    """Reads a part of a file."""

    file: Path
    start: int

    name = "read files"

    def ask(self, worker: object) -> bytes:
        with self.file.open("rb") as stream:
            stream.seek(self.start)
            return stream.read(PART)


def with_files(scenario: Scenario, loader: Provider | None) -> Scenario:
    """Returns a scenario whose model reads files that are on this node, as they are on that of the loader.

    What this node does not have, or has otherwise, is brought, and kept for the next run. loader: None if it is on this
    machine.
    """
    if loader is None or loader.is_here:
        return scenario

    def brought(model: ModelPart) -> ModelPart:
        read = {str(path) for path in model.reads()}
        here = {key: _on_this_node(value, loader) for key, value in model if isinstance(value, str) and value in read}
        return model.model_copy(update=here)

    groups = tuple(
        one.model_copy(update={"model": brought(one.model)}) if isinstance(one.model, ModelPart) else one
        for one in scenario.clients
    )
    return scenario.model_copy(update={"model": brought(scenario.model), "clients": groups})


def _on_this_node(path: str, loader: Provider) -> str:
    """Returns the path of the same files on this node. What neither node has is left to the model to tell."""
    found = loader.ask(FindRequest(path)) if is_local(location(path)) else None
    if found is None or fingerprint(path) == found.fingerprint:
        return path
    place = cache_folder("models") / found.fingerprint
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers of this node wait for the first
        if not place.exists():
            half = place.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)  # of a worker that died
            _bring(found, half / found.where.name, loader)
            half.rename(place)
    return str(place / found.where.name)


def _bring(found: Found, there: Path, loader: Provider) -> None:
    for name, size in found.sizes.items():
        file = there / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            for start in range(0, size, PART):
                stream.write(loader.ask(ReadRequest(found.where / name, start)))
