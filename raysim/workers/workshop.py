"""An actor's state before it has data: the scenario and a device. A set-up then replaces it by a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors import Setup, Value
from raysim.data import Federation
from raysim.parts.errors import BadInput
from raysim.scenario import Scenario
from raysim.scenario.dependencies import fingerprint
from raysim.workers.device import open_device, prefer_deterministic, stand_in

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
    """Replaces a workshop by a worker that has the data."""

    federation: Value[Federation]
    files: Mapping[str, str] = field(default_factory=dict)  # fingerprints of what models read, where data are loaded

    def given(self, worker: Workshop) -> tuple[Scenario, Federation, torch.device]:
        """Returns what a worker is made of. Raises BadInput if a model would read other files on this node."""
        for path, mark in self.files.items():
            if fingerprint(path) != mark:
                text = f"must read the same files on all nodes, got others, or none, at {path} on one of them"
                raise BadInput("model", f"{text}; copy them there, or take a disk that all nodes share")
        return worker.scenario, self.federation.content, worker.device


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
