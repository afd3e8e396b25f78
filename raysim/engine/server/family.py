"""Runs with a server: clients are dispatched, train and arrive, and the server steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from actors import Group, Pool, Value
from raysim.data import Federation
from raysim.engine import groups
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.server.jobs import ServerJobs
from raysim.engine.server.recorder import ServerRecorder
from raysim.engine.server.simulation import ServerSimulation
from raysim.engine.server.timeline import new_timeline
from raysim.engine.server.weights import weigh
from raysim.engine.visitor import Visitor
from raysim.parts.errors import located
from raysim.scenario import Scenario
from raysim.workers.replies import UpdateCost
from raysim.workers.workshop import BecomeServer, Workshop
from raysim.world.server_happening import Ended, Happening, Stepped
from results import Writer

if TYPE_CHECKING:
    from raysim.workers.server import ServerWorker


@dataclass(frozen=True)
class ServerFamily:
    """How algorithms with a server are run."""

    scenario: Scenario

    @property
    def groups(self) -> list[Group]:
        return [groups.loader(self.scenario), groups.clients(self.scenario), groups.aggregators(self.scenario)]

    def recorder(self, writer: Writer) -> ServerRecorder:
        return ServerRecorder(writer)

    def start(self, pool: Pool, recorder: ServerRecorder, checkpoint: Checkpoint | None) -> ServerSimulation:
        for group in self.groups:
            pool.start(group)
        return ServerSimulation(self.scenario, ServerJobs(self.scenario, pool), recorder, checkpoint)

    def worker(self, federation: Federation) -> ServerWorker:
        return BecomeServer(Value(federation)).build(Workshop(self.scenario, 0.0))

    def dry(
        self, recorder: ServerRecorder, federation: Federation, measure: Callable[[], UpdateCost]
    ) -> Iterator[Happening]:
        writing = _DryRun(self.scenario, recorder, federation.samples)
        return writing.follow(new_timeline(self.scenario, federation.samples, measure))


class _DryRun(Visitor):
    """Writes what happens, and trains nothing."""

    def __init__(self, scenario: Scenario, recorder: ServerRecorder, samples: NDArray[np.int64]) -> None:
        self._scenario, self._recorder, self._samples = scenario, recorder, samples
        self._population = scenario.population(samples)
        self.closed = recorder.closed

    def ended(self, ended: Ended) -> None:
        self._recorder.ended(ended, int(self._samples[ended.dispatched.client]))

    def stepped(self, stepped: Stepped) -> None:
        with located("algorithm"):
            weights = weigh(self._scenario, stepped.arrivals, self._population, stepped.version)
        self._recorder.stepped(stepped, weights)
