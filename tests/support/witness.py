"""For tests that look inside a run: a pool that remembers its jobs, and workers by themselves."""

from collections import deque
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from conftest import Raw

import raysim
from actors import InlinePool, Job, Request
from raysim.data import federate
from raysim.runs.execution import Execution
from raysim.workers.records import load
from raysim.workers.requests import SaveClientsRequest, StepRequest
from raysim.workers.workbench import Workbench

Worker = TypeVar("Worker", bound=Workbench)
Arrays = dict[str, np.ndarray]


class WitnessPool(InlinePool):
    """Remembers every request with its job, in the order of submission."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, Job[Any, Any]]] = []

    def submit(self, group: str, request: Request[Any, Any], **options: Any) -> Job[Any, Any]:
        job = super().submit(group, request, **options)
        self.seen.append((request, job))
        return job

    @property
    def server_state(self) -> Arrays:
        """The server's state after its last step."""
        _, job = next(pair for pair in reversed(self.seen) if isinstance(pair[0], StepRequest))
        return load(job.left.state, job.left.message.content)

    @property
    def client_states(self) -> dict[int, Arrays]:
        """What the algorithm keeps of each client at the end of a run with `run.save_clients`."""
        saved = [request.own for request, _ in self.seen if isinstance(request, SaveClientsRequest)]
        pairs = (pair for own in saved for pair in zip(own.clients, own.states, strict=True))
        return {client: state.content.algorithm for client, state in pairs}


class LatePool(InlinePool):
    """Does each job only when it is waited for, so that a run submits as many ahead as it would on several workers."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[tuple[Job[Any, Any], Request[Any, Any]]] = deque()

    def submit(self, group: str, request: Request[Any, Any], **options: Any) -> Job[Any, Any]:
        job = Job.of(group, request, options.get("priority", ()), options.get("label", ""))
        self._waiting.append((job, request))
        return job

    def wait(self) -> None:
        job, request = self._waiting.popleft()
        done = super().submit(job.group, request, priority=job.priority, label=job.label)
        for value, given in zip(job.values, done.values, strict=True):
            value.content = given.content
        assert done.outcome
        job.end(done.outcome)

    def size(self, group: str) -> int:
        return 4


def execute(raw: Raw, folder: Path, pool: InlinePool) -> raysim.Result:
    """Runs a scenario on a pool of one's own."""
    assert list(Execution(raysim.parse_scenario(raw), folder)(pool))
    return raysim.Result(folder)


def worker_of(raw: Raw, kind: type[Worker]) -> Worker:
    """A worker for the scenario, in this process."""
    scenario = raysim.parse_scenario(raw)
    federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
    return kind(scenario, federation, torch.device("cpu"))
