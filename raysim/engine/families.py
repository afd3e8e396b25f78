"""The families of algorithms that raysim can run: those with a server, and those of peers without one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from actors import Group, Needs, Pool, Value
from raysim.data import Federation
from raysim.data.sources.in_memory import without_arrays
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.peers.jobs import PeersJobs
from raysim.engine.peers.recorder import PeersRecorder
from raysim.engine.peers.simulation import PeersSimulation, sizes_of, timeline_of
from raysim.engine.progress import Happened
from raysim.engine.recorder import Recorder
from raysim.engine.server.course import Course
from raysim.engine.server.guarantee import weigh
from raysim.engine.server.jobs import ServerJobs
from raysim.engine.server.recorder import ServerRecorder
from raysim.engine.server.simulation import ServerSimulation
from raysim.engine.simulation import Simulation
from raysim.parts.errors import located
from raysim.scenario import Scenario
from raysim.scenario.run_settings import Nodes
from raysim.terms import Moment
from raysim.workers.workshop import CLIENT, LOADER, SERVER, Become, Workshop
from raysim.world.clock import Horizon
from raysim.world.server_happening import Closed, Ended, Happening, Stepped
from results import Writer

if TYPE_CHECKING:
    from raysim.workers.peers import PeersWorker
    from raysim.workers.server import ServerWorker


def family_of(scenario: Scenario) -> Family:
    """Returns the family of the scenario's algorithm."""
    return ServerFamily(scenario) if scenario.has_server else PeersFamily(scenario)


@dataclass(frozen=True)
class Family(ABC):
    """How algorithms of one kind are run."""

    scenario: Scenario

    @property
    def groups(self) -> Sequence[Group]:
        """The workers that a run needs: one that loads the data, and those that train.

        By default, the loader is on the driver's node. So the files need to be on that node only, and the loaded data
        are not lost during the run.
        """
        asked = self.scenario.resources
        on_loader = Needs(with_driver=True) if asked.load_on is None else _needs(asked.load_on)
        needs = _needs(asked.clients_on, asked.cpus_per_client, asked.gpus_per_client)
        clients = Group(CLIENT, self._factory(needs), asked.client_actors, needs)
        return [Group(LOADER, object, 1, on_loader), clients]  # requests do all that the loader does

    def _factory(self, needs: Needs) -> Callable[[], Workshop]:
        return partial(Workshop, without_arrays(self.scenario), needs.gpus)

    @abstractmethod
    def recorder(self, writer: Writer) -> Recorder:
        """Returns a new recorder, which writes to the writer's tables."""

    def start(self, pool: Pool, recorder: Recorder, checkpoint: Checkpoint | None) -> Simulation[Any, Any]:
        """Starts a run: makes the workers and loads the data. Raises JobFailed if that fails, and ValueError if the
        data do not suit the algorithm.

        checkpoint: where a resumed run continues; None for a new run.
        """
        for group in self.groups:
            pool.start(group)
        return self._simulation(pool, recorder, checkpoint)

    @abstractmethod
    def _simulation(self, pool: Pool, recorder: Any, checkpoint: Checkpoint | None) -> Simulation[Any, Any]:
        """Loads the data, and begins the run."""

    def worker(self, federation: Federation) -> ServerWorker | PeersWorker:
        """Returns a worker in this process, with which models are tried and costs are measured."""
        return Become(Value(federation)).build(Workshop(self.scenario, 0.0))

    @abstractmethod
    def dry(self, recorder: Any, federation: Federation, measure: Callable[[], Any]) -> Iterator[Happened]:
        """Yields what happens on the timeline, each once it is written to the recorder, and trains nothing.

        measure: returns the cost of an update, or of a peer; called only if delays depend on it.
        """


class ServerFamily(Family):
    """How algorithms with a server are run: clients are dispatched, train and arrive, and the server steps."""

    @property
    def groups(self) -> Sequence[Group]:
        asked = self.scenario.resources
        needs = _needs(asked.aggregators_on, gpus=asked.gpus_per_aggregator)
        return [*super().groups, Group(SERVER, self._factory(needs), asked.aggregators, needs)]

    def recorder(self, writer: Writer) -> ServerRecorder:
        return ServerRecorder(writer, self.scenario.run)

    def _simulation(self, pool: Pool, recorder: ServerRecorder, checkpoint: Checkpoint | None) -> ServerSimulation:
        return ServerSimulation(self.scenario, ServerJobs(self.scenario, pool), recorder, checkpoint)

    def dry(self, recorder: ServerRecorder, federation: Federation, measure: Callable[[], Any]) -> Iterator[Happening]:
        scenario = self.scenario
        course = Course(scenario, federation.samples, federation.partition_table, measure)
        recorder.follows(course)
        if scenario.foresees_bytes:
            recorder.budget.require_traffic(course.measure().tensors)
        for happening in _ending(recorder, course, scenario.run.horizon):
            match happening:
                case Stepped():
                    with located("algorithm"):
                        weights = weigh(scenario, happening, course.population)
                    sizes = [*map(course.sent, happening.members)] if scenario.foresees_bytes else None
                    recorder.stepped(happening, weights, foreseen=sizes)
                case Ended():
                    recorder.ended(happening)
                case Closed():
                    recorder.closed(happening)
            yield happening
        recorder.exposed()


class PeersFamily(Family):
    """How algorithms without a server are run: peers train, and mix their models with those of their neighbours."""

    def recorder(self, writer: Writer) -> PeersRecorder:
        return PeersRecorder(writer, self.scenario.run, synchronous=self.scenario.world.synchronous)

    def _simulation(self, pool: Pool, recorder: PeersRecorder, checkpoint: Checkpoint | None) -> PeersSimulation:
        return PeersSimulation(self.scenario, PeersJobs(self.scenario, pool), recorder, checkpoint)

    def dry(self, recorder: PeersRecorder, federation: Federation, measure: Callable[[], Any]) -> Iterator[Happened]:
        recorder.held(federation.samples)
        costs, sizes, began = cache(measure), None, dict[int, Moment]()
        if self.scenario.foresees_bytes:
            recorder.budget.require_traffic(costs().tensors)
        for happening in timeline_of(self.scenario, federation.samples, costs):
            if self.scenario.foresees_bytes:
                sizes = list(sizes_of(self.scenario, costs(), happening, began))
            recorder.exchanged(happening, foreseen=sizes)
            if happening.evaluated:
                recorder.budget.evaluated(None)
            yield happening
            if recorder.budget.ended_by:
                return


def _ending(recorder: ServerRecorder, course: Course, horizon: Horizon) -> Iterator[Happening]:
    """Yields what happens, and ends the timeline with the evaluation by which its bytes are spent, as a real run does:
    what is then under way is unfinished. The recorder must have each happening before it asks for the next one."""
    for number, happening in enumerate(course.timeline(horizon), 1):
        yield happening
        if isinstance(happening, Closed) and happening.evaluated:
            recorder.budget.evaluated(None)
            if recorder.budget.ended_by and not happening.ends:
                yield from islice(course.timeline(happening.last_of(horizon)), number, None)
                return


def _needs(nodes: Nodes, cpus: float = 0.0, gpus: float = 0.0) -> Needs:
    return Needs(cpus, gpus, nodes.labels)
