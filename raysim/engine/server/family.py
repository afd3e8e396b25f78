"""Runs with a server: clients are dispatched, train and arrive, and the server steps."""

from __future__ import annotations

from dataclasses import dataclass

from actors import Group, Pool, Value
from raysim.data import federate
from raysim.engine import groups
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.server.jobs import ServerJobs
from raysim.engine.server.recorder import ServerRecorder
from raysim.engine.server.simulation import ServerSimulation
from raysim.engine.server.timeline import new_timeline
from raysim.engine.server.weights import weigh
from raysim.scenario import Scenario
from raysim.workers.replies import UpdateCost
from raysim.workers.workshop import BecomeServer, Workshop
from raysim.world.server_happening import Closed, Ended, Stepped
from results import Writer


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

    def dry(self, recorder: ServerRecorder) -> None:
        """Writes the timeline, and trains nothing. It loads the data, because only clients with samples take part."""
        scenario = self.scenario
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        recorder.partition(federation.partition_table())
        samples = federation.samples
        population = scenario.population(samples)

        def cost() -> UpdateCost:
            return BecomeServer(Value(federation)).build(Workshop(scenario, 0.0)).cost()

        for happening in new_timeline(scenario, samples, cost):
            if isinstance(happening, Ended):
                recorder.ended(happening, int(samples[happening.dispatched.client]))
            elif isinstance(happening, Stepped):
                recorder.stepped(happening, weigh(scenario, happening.arrivals, population, happening.version))
            elif isinstance(happening, Closed):
                recorder.closed(happening)
