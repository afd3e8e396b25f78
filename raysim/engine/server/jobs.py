"""Submits the jobs of a run with a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors import Job, Pool, Value, finished
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.server.course import Course
from raysim.engine.server.evaluation import Evaluations, PendingEvaluation
from raysim.engine.server.guarantee import noise, one_sum, weigh
from raysim.engine.server.training import Training
from raysim.engine.simulation import Committed, Kept, Pending, load
from raysim.scenario import Scenario
from raysim.terms import ClientState, Weight, Wire
from raysim.workers.replies import StepReply, TrainedMember, WorkCost
from raysim.workers.requests import FirstRequest, SteppedState, StepRequest, TrainedChunk
from raysim.workers.workshop import CLIENT, SERVER, CostRequest
from raysim.world.server_happening import Closed, Ended, Happening, Started, Stepped


@dataclass(frozen=True)
class PendingStep(Pending):
    """A server step: its job, and the training jobs of the chunks of clients whose updates it uses."""

    chunks: list[Job[list[TrainedMember], TrainedChunk]]
    step: Job[StepReply, SteppedState]
    weights: list[Weight] | None  # of the updates in their sum; None: the algorithm gets every update

    @property
    def jobs(self) -> Sequence[Job[Any, Any]]:
        return [*self.chunks, self.step]

    @property
    def undone(self) -> int:
        """The number of jobs that are not done. The step's job waits for all others, so it is done last."""
        return 0 if self.step.done else super().undone

    @property
    def trained(self) -> list[tuple[TrainedMember, str]]:
        """What training gave, and the worker that did it, for each update in order of dispatch."""
        return [(trained, chunk.ended.worker) for chunk in self.chunks for trained in chunk.result]


class ServerJobs:
    """Submits jobs, and remembers which values hold the models and states. It never sees their tensors."""

    def __init__(self, scenario: Scenario, pool: Pool) -> None:
        """Loads the data and makes the first model. The workers must have started. Raises JobFailed if that fails, and
        BadInput if the run cannot be as the scenario says."""
        self.scenario, self.pool = scenario, pool
        self.described = load(scenario, pool, SERVER, CLIENT)
        samples, partition = self.described.samples, self.described.partition
        self.course = Course(scenario, samples, lambda: partition, self._cost)
        self._changed = bool(scenario.downlink) and not scenario.sends_each
        models, self.groups = scenario.models, scenario.groups
        first = FirstRequest(self.described.state, self._changed, (1.0, *models))
        made = finished(pool, pool.submit(SERVER, first, label="make the first model")).left
        self._messages: dict[int, Value[Wire]] = {0: made.message}  # by version
        self._received = {0: made.received} if made.received else self._messages  # as clients decode them
        self._state = made.state
        fresh = made.clients if self.described.stateful else {}
        self.training = Training(scenario, pool, self._received, fresh, self.groups.keys(models))
        given = (scenario, pool, self.described, self.course.levels, self._messages, self.training.states_of)
        self.evaluations = Evaluations(*given)

    def _cost(self) -> WorkCost:
        """Measures what a client's update costs."""
        job = self.pool.submit(SERVER, CostRequest(), label="measure the cost of an update")
        return finished(self.pool, job).result

    # --- what happens -------------------------------------------------------------------------------------------------

    def submit(self, happening: Happening) -> PendingStep | PendingEvaluation | None:
        """Submits the jobs of a happening, and returns them; None if it waits for none."""
        match happening:
            case Stepped():
                return self._step(happening)
            case Closed():
                return self.evaluations.of(happening.version) if happening.evaluated else None
            case Started():  # its arrival depends on the work done
                self.training.begin(happening.dispatched)
            case Ended():
                self.training.drop(happening.dispatched)
        return None

    def _step(self, stepped: Stepped) -> PendingStep:
        """Trains the clients of a server step, unless they were trained at their dispatch, and then does the step."""
        population, plan = self.course.population, self.course.plan
        weights = weigh(self.scenario, stepped, population)
        summed = one_sum(weights)
        if self.scenario.follows_training:
            chunks = self.training.take(stepped)
        else:
            chunks = self.training.train(stepped, None if self.scenario.server_sums else weights)
        request = StepRequest(
            version=stepped.version,
            moment=stepped.moment,
            arrivals=stepped.arrivals,
            weights=None if weights is None else tuple(weights),
            message=self._messages[stepped.version - 1],
            state=self._state,
            chunks=tuple(chunk.left.update for chunk in chunks),
            changed=self._changed,
            noise=noise(self.scenario, plan, stepped, summed, population.expected) if plan and summed else None,
        )
        label = f"step to version {stepped.version}"
        job = self.pool.submit(SERVER, request, priority=(stepped.version,), label=label)
        self._messages[stepped.version], received, self._state, _ = job.left
        if received:
            self._received[stepped.version] = received
        self.evaluations.made = stepped.moment
        return PendingStep(chunks, job, weights)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def kept(self, stepped: Stepped | None) -> dict[str, Kept]:
        """Returns the records after a step that was just submitted, by their keys in checkpoints.

        stepped: the step; None at the start.
        """
        version = stepped.version if stepped else 0
        state = {f"state/{place}": Kept(value) for place, value in enumerate(self._state.values())}
        clients = self.training.kept(stepped) if stepped else {}
        received = {f"received/{version}": Kept(self._received[version])} if self._changed else {}
        return {f"message/{version}": Kept(self._messages[version]), **received, **state, **clients}

    def recall(self, checkpoint: Checkpoint) -> Committed:
        """Goes on from the records of a checkpoint, and returns them."""
        put: dict[str, Value[Any]] = {}
        for key, record in checkpoint.records().items():
            of_client = key.startswith("client/")
            put[key] = self.pool.put(ClientState.of_flat(record) if of_client else record.get("", record))
        committed = Committed({key: Kept(value) for key, value in put.items()})
        self.go_back(committed)
        self.training.recall(checkpoint.memory["simulation"]["training"])
        return committed

    def go_back(self, committed: Committed) -> None:
        """Takes the models and states of the records, and forgets what has been submitted since."""
        self.evaluations.forget()
        for kind, versions in (("message", self._messages), ("received", self._received)):
            if kind == "message" or self._changed:
                versions.clear()  # training shares it
                versions.update(committed.numbered(kind))
        states = committed.numbered("state")
        self._state = {name: states[place] for place, name in enumerate(self._state)}
        self.training.go_back(committed.numbered("client"))

    # --- the end ------------------------------------------------------------------------------------------------------

    def forget(self, live: set[int], newest: int) -> list[str]:
        """Frees the versions that no later update starts from, except the newest, and returns their keys in
        checkpoints.

        live: the versions that are needed.
        """
        gone = [version for version in self._messages if version != newest and version not in live]
        for version in gone:
            del self._messages[version]
            self._received.pop(version, None)
        return [f"{kind}/{version}" for version in gone for kind in ("message", "received")]

    def message(self, version: int) -> Value[Wire]:
        """Returns the message of the newest version."""
        return self._messages[version]
