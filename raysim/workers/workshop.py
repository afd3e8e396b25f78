"""What an actor hosts at first: the scenario and a device, and no data yet. A set-up then makes it a worker."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from actors import Answer, Setup, Value
from raysim.data import Federation, federate
from raysim.scenario import Scenario

if TYPE_CHECKING:
    import torch

    from raysim.workers.client import ClientWorker
    from raysim.workers.peers import PeersWorker
    from raysim.workers.server import ServerWorker


@dataclass(frozen=True)
class OpenWorkshop:
    """What each actor calls once."""

    scenario: Scenario
    gpus: float  # how much of one it may use; 0: none

    def __call__(self) -> Workshop:
        return Workshop(self.scenario, self.gpus)


class Workshop:
    """A process that has loaded torch, on the device that it was given."""

    def __init__(self, scenario: Scenario, gpus: float) -> None:
        import torch

        torch.set_num_threads(scenario.resources.threads)
        self.scenario = scenario
        self.device = _device(gpus)

    def load(self) -> Answer[None]:
        """Loads and divides the data, and leaves them."""
        scenario = self.scenario
        return Answer(None, (federate(scenario.data, scenario.server_data, scenario.seed, scenario.public),))


def _device(share: float) -> torch.device:
    """A GPU only where one was asked for: an actor that asked for none sees all of them."""
    import torch

    if share == 0:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RuntimeError("the scenario's resources ask for a GPU, but torch finds none here")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    if share < 1:  # Ray shares out GPUs in name only
        torch.cuda.set_per_process_memory_fraction(share)
    return torch.device("cuda")


# --- set-ups ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BecomeClient(Setup):
    """Makes a workshop a worker that trains and evaluates clients."""

    federation: Value[Federation]

    def build(self, worker: Workshop) -> ClientWorker:
        from raysim.workers.client import ClientWorker

        return ClientWorker(worker.scenario, self.federation.content, worker.device)


@dataclass(frozen=True)
class BecomeServer(Setup):
    """Makes a workshop a worker that does the server's steps."""

    federation: Value[Federation]

    def build(self, worker: Workshop) -> ServerWorker:
        from raysim.workers.server import ServerWorker

        return ServerWorker(worker.scenario, self.federation.content, worker.device)


@dataclass(frozen=True)
class BecomePeers(Setup):
    """Makes a workshop a worker that hosts peers."""

    federation: Value[Federation]

    def build(self, worker: Workshop) -> PeersWorker:
        from raysim.workers.peers import PeersWorker

        return PeersWorker(worker.scenario, self.federation.content, worker.device)
