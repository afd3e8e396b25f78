"""An actor's state before it has data: the scenario and a device. A set-up then replaces it by a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors import Setup, Value
from raysim.data import Federation
from raysim.parts.errors import BadInput
from raysim.parts.lazy import torch
from raysim.scenario import Scenario
from raysim.scenario.dependencies import fingerprint
from raysim.workers.device import open_device, prefer_deterministic, stand_in_bytes

if TYPE_CHECKING:
    from raysim.workers.peers import PeersWorker
    from raysim.workers.server import ServerWorker


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
class Become(Setup):
    """Replaces a workshop by a worker that has the data."""

    federation: Value[Federation]
    files: Mapping[str, str] = field(default_factory=dict)  # fingerprints of what models read, where data are loaded

    def build(self, worker: Workshop) -> ServerWorker | PeersWorker:
        """Raises BadInput if a model would read other files on this node."""
        for path, mark in self.files.items():
            if fingerprint(path) != mark:
                text = f"must read the same files on all nodes, got others, or none, at {path} on one of them"
                raise BadInput("model", f"{text}; copy them there, or take a disk that all nodes share")
        if worker.scenario.has_server:
            from raysim.workers.server import ServerWorker

            return ServerWorker(worker.scenario, self.federation.content, worker.device)
        from raysim.workers.peers import PeersWorker

        return PeersWorker(worker.scenario, self.federation.content, worker.device)
