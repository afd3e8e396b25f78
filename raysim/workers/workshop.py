"""How every run begins: an actor holds the scenario and a device, the data are loaded, a set-up replaces it by a worker
with the data, and one of these describes and measures what there is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from actors import Answer, Gang, Query, Request, Setup, Value
from raysim.data import Federation, federate
from raysim.parts.errors import BadInput, Problem, ScenarioError
from raysim.parts.lazy import torch
from raysim.parts.process import isolated
from raysim.scenario import Scenario
from raysim.scenario.dependencies import fingerprint
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


STAND_IN = "RAYSIM_STAND_IN_GPU"
"""Variable for tests, with a number of GiB: what runs on a GPU then runs on the CPU, which stands in for a GPU with as
much memory."""
_TEST = "PYTEST_CURRENT_TEST"  # set by pytest while a test runs
CONTEXT_BYTES = 600 << 20  # what CUDA takes for each process, beside the memory that torch allocates


@dataclass(frozen=True)
class ComputeDevice:
    """A worker's device."""

    kind: Literal["cpu", "cuda"]  # where it computes, as torch calls it
    limit_bytes: int | None = None  # of the GPU's memory that torch may allocate; None: all that is free


def open_device(share: float) -> ComputeDevice:
    """Returns a share of the GPU that Ray gave to this process, or the CPU for a share of 0.

    An actor that asked for none still sees all GPUs of its node, so that cannot tell. Raises RuntimeError if there is
    no GPU, or if the share is too small to compute with.
    """
    if share == 0:
        return ComputeDevice("cpu")
    if stood_in := stand_in_bytes():
        return ComputeDevice("cpu", _limit(share, stood_in))
    if not torch.cuda.is_available():
        raise RuntimeError("the scenario's resources ask for a GPU, but torch finds none here; see raysim doctor")
    total = torch.cuda.get_device_properties(0).total_memory
    limit = _limit(share, total)
    if limit is not None:  # Ray counts shares of GPUs, but does not enforce them
        torch.cuda.set_per_process_memory_fraction(limit / total)
    return ComputeDevice("cuda", limit)


def prefer_deterministic() -> None:
    """Lets torch avoid algorithms that round anew each time, where it can.

    All actors of a run that uses a GPU ask for it, those on CPUs too, since a run in one process shares the setting.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # it costs kernels


def gpus_here() -> list[str]:
    """Returns the numbers of the GPUs of this machine that this process may use."""
    if stand_in_bytes():
        return ["0"]
    count, visible = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[:count] if visible else [str(number) for number in range(count)]


def _limit(share: float, total_bytes: int) -> int | None:
    """Returns how much torch may allocate, so that the whole process keeps to its share; None for a whole GPU."""
    if share == 1:
        return None
    limit = int(share * total_bytes) - CONTEXT_BYTES
    if limit <= 0:
        least = CONTEXT_BYTES / total_bytes
        text = f"must be more than {least:.2g} on this GPU, because each process takes so much for CUDA alone"
        raise RuntimeError(f"resources.gpus_per_client and gpus_per_aggregator: {text}, got {share:g}; raise it")
    return limit


def stand_in_bytes() -> int | None:
    """Returns the memory of the GPU that is stood in for; None if none is. Raises ScenarioError outside of tests."""
    if STAND_IN not in os.environ:
        return None
    if _TEST not in os.environ:
        text = f"is for tests only, which set {_TEST} too; unset it, or nothing would run on a GPU"
        raise ScenarioError("environment", [Problem(STAND_IN, text)])
    return int(float(os.environ[STAND_IN]) * 2**30)
