"""How every run begins: an actor holds the scenario and a device, the data are loaded, a set-up replaces it by a worker
with the data, and one of these describes and measures what there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors import Answer, Gang, Query, Request, Setup, Value
from raysim.data import Federation, federate
from raysim.parts.errors import BadInput
from raysim.parts.lazy import torch
from raysim.parts.process import isolated
from raysim.scenario import Scenario
from raysim.scenario.dependencies import fingerprint
from raysim.workers.device import open_device, prefer_deterministic, stand_in_bytes
from raysim.workers.replies import Described, WorkCost
from results.location import is_local, location

if TYPE_CHECKING:
    from raysim.workers.peers import PeersWorker
    from raysim.workers.server import ServerWorker


CLIENT, SERVER, LOADER = "client", "aggregator", "loader"  # names of the groups of workers


class Workshop:
    """Holds the scenario and the device of an actor, and has set up torch."""

    def __init__(self, scenario: Scenario, gpus: float) -> None:
        """gpus: share of a GPU that it may use; 0: it uses the CPU."""
        torch.set_num_threads(scenario.resources.threads)
        self.scenario = scenario
        asked = scenario.resources
        if (asked.gpus_per_client or asked.gpus_per_aggregator) and not stand_in_bytes():
            prefer_deterministic()
        self.device = torch.device(open_device(gpus).kind)


@dataclass(frozen=True)
class LoadRequest(Request[dict[str, str], Value[Federation]]):
    """Loads the data and divides them among clients, on the node with the files. It needs no torch. The result has
    fingerprints of the files that models read there, by path."""

    scenario: Value[Scenario]  # with the contents of its arrays, which the workers' own scenario lacks

    name = "load"

    def leaves(self) -> Value[Federation]:
        return Value()

    def call(self, worker: object, gang: Gang) -> Answer[dict[str, str], Value[Federation]]:
        given = self.scenario.content
        with isolated():  # another run may have been here before
            federation = federate(given.data, given.server_data, given.seed, given.public)
        models = (given.model, *given.models.values())
        paths = {str(path) for model in models for path in model.reads() if is_local(location(path))}
        files = {path: mark for path in sorted(paths) if (mark := fingerprint(path))}
        return Answer(files, Value(federation))


@dataclass(frozen=True)
class Become(Setup):
    """Replaces a workshop by a worker that has the data."""

    federation: Value[Federation]
    files: Mapping[str, str] = field(default_factory=dict)  # fingerprints of what models read, where data are loaded
    built: dict[str, ServerWorker | PeersWorker] = field(default_factory=dict)  # in this process, by device

    def build(self, worker: Workshop) -> ServerWorker | PeersWorker:
        """Returns a worker, the same one for groups that share a process, because no call has an effect on later ones.

        Raises BadInput if a model would read other files on this node.
        """
        kind = worker.device.type
        if kind not in self.built:
            self.built[kind] = self._new(worker)
        return self.built[kind]

    def _new(self, worker: Workshop) -> ServerWorker | PeersWorker:
        for path, mark in self.files.items():
            if fingerprint(path) != mark:
                text = f"must read the same files on all nodes, got others, or none, at {path} on one of them"
                raise BadInput("model", f"{text}; copy them there, or take a disk that all nodes share")
        if worker.scenario.has_server:
            from raysim.workers.server import ServerWorker

            return ServerWorker(worker.scenario, self.federation.content, worker.device)
        from raysim.workers.peers import PeersWorker

        return PeersWorker(worker.scenario, self.federation.content, worker.device)


@dataclass(frozen=True)
class DescribeRequest(Query[Described]):
    """Tries the model, and describes the data, the model and, with a server, the states to the scheduler."""

    name = "describe"

    def ask(self, worker: ServerWorker | PeersWorker) -> Described:
        from raysim.workers.preflight import try_all

        try_all(worker)
        return worker.describe()


@dataclass(frozen=True)
class CostRequest(Query[WorkCost]):
    """Measures what an update costs or, without a server, what a peer's training and mixing do."""

    name = "cost"

    def ask(self, worker: ServerWorker | PeersWorker) -> WorkCost:
        return worker.cost()
