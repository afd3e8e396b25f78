"""Runs with a server: clients are dispatched, train and arrive, and the server steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from raysim.terms import Population
from raysim.workers.replies import UpdateCost
from raysim.workers.workshop import BecomeServer, Workshop
from raysim.world.server_happening import Happening, Stepped
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
        return ServerRecorder(writer, self.scenario.run)

    def start(self, pool: Pool, recorder: ServerRecorder, checkpoint: Checkpoint | None) -> ServerSimulation:
        for group in self.groups:
            pool.start(group)
        return ServerSimulation(self.scenario, ServerJobs(self.scenario, pool), recorder, checkpoint)

    def worker(self, federation: Federation) -> ServerWorker:
        return BecomeServer(Value(federation)).build(Workshop(self.scenario, 0.0))

    def dry(
        self, recorder: ServerRecorder, federation: Federation, measure: Callable[[], UpdateCost]
    ) -> Iterator[Happening]:
        recorder.held(federation.samples)
        writing = _DryRun(self.scenario, recorder, self.scenario.population(federation.samples))
        return writing.follow(new_timeline(self.scenario, federation.samples, federation.partition_table, measure))


class _DryRun(Visitor):
    """Writes what happens, and trains nothing."""

    def __init__(self, scenario: Scenario, recorder: ServerRecorder, population: Population) -> None:
        self._scenario, self._recorder, self._population = scenario, recorder, population
        self.ended, self.closed = recorder.ended, recorder.closed

    def stepped(self, stepped: Stepped) -> None:
        with located("algorithm"):
            weights = weigh(self._scenario, stepped, self._population)
        self._recorder.stepped(stepped, weights)
