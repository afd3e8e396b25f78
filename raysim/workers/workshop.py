"""An actor's state before it has data: the scenario and a device. A set-up then replaces it by a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from actors import Setup, Value
from raysim.data import Federation
from raysim.parts.standard_state import set_standard
from raysim.scenario import Scenario
from raysim.workers.device import open_device, prefer_deterministic, stand_in

if TYPE_CHECKING:
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

        set_standard()
        torch.set_num_threads(scenario.resources.threads)
        self.scenario = scenario
        asked = scenario.resources
        if (asked.gpus_per_client or asked.gpus_per_aggregator) and not stand_in():
            prefer_deterministic()
        self.share = open_device(gpus)
        self.device = torch.device(self.share.kind)


# --- set-ups ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BecomeClient(Setup):
    """Replaces a workshop by a worker that trains and evaluates clients."""

    federation: Value[Federation]

    def build(self, worker: Workshop) -> ClientWorker:
        from raysim.workers.client import ClientWorker

        return ClientWorker(worker.scenario, self.federation.content, worker.device)


@dataclass(frozen=True)
class BecomeServer(Setup):
    """Replaces a workshop by a worker that does the server's steps."""

    federation: Value[Federation]

    def build(self, worker: Workshop) -> ServerWorker:
        from raysim.workers.server import ServerWorker

        return ServerWorker(worker.scenario, self.federation.content, worker.device)


@dataclass(frozen=True)
class BecomePeers(Setup):
    """Replaces a workshop by a worker that mixes, trains and evaluates peers."""

    federation: Value[Federation]

    def build(self, worker: Workshop) -> PeersWorker:
        from raysim.workers.peers import PeersWorker

        return PeersWorker(worker.scenario, self.federation.content, worker.device)
