"""Submits the jobs of a run with a server: training, server steps and evaluation."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from actors import Job, Pool, Request, Value, finished
from raysim.clients.group import Architectures
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.server.course import Course
from raysim.engine.server.guarantee import noise
from raysim.engine.server.pending import PendingEvaluation, PendingStep
from raysim.engine.server.training import Training, one_sum, weigh
from raysim.engine.simulation import Committed, Kept
from raysim.parts.rng import generator
from raysim.scenario import Scenario
from raysim.terms import ClientState, ModelKey, Moment, Wire, suffixed
from raysim.workers.replies import Described, Evaluated, MetricSums, WorkCost
from raysim.workers.requests import (
    EvaluateClientsRequest,
    EvaluateRequest,
    FinishRequest,
    FirstRequest,
    MetricsRequest,
    OwnModels,
    SaveClientsRequest,
    Served,
    StatisticsRequest,
    StepRequest,
)
from raysim.workers.shared_requests import CLIENT, LOADER, SERVER, CostRequest, DescribeRequest, LoadRequest
from raysim.workers.workshop import Become
from raysim.world.server_happening import Closed, Ended, Happening, Started, Stepped

Result = TypeVar("Result")
Left = TypeVar("Left")

EVALUATION_SHARD = 2500  # samples in an evaluation job; fixed, because it decides the bits of the sum of losses
EVALUATION_CLIENTS = 25  # clients in a job that evaluates or saves clients' own models


class ServerJobs:
    """Submits jobs, and remembers which values hold the models and states. It never sees their tensors."""

    def __init__(self, scenario: Scenario, pool: Pool) -> None:
        """Loads the data and makes the first model. The workers must have started. Raises JobFailed if that fails, and
        BadInput if the run cannot be as the scenario says."""
        self.scenario, self.pool = scenario, pool
        loading = pool.submit(LOADER, LoadRequest(pool.put(scenario)), label="load data")
        loaded = finished(pool, loading)
        become = Become(loaded.left, loaded.result)
        pool.set_up({SERVER: become})
        describing = pool.submit(SERVER, DescribeRequest(), label="describe data")
        pool.set_up({CLIENT: become})
        self.described = finished(pool, describing).result
        samples, partition = self.described.samples, self.described.partition
        self.course = Course(scenario, samples, lambda: partition, self._cost)
        self._changed = bool(scenario.downlink) and not scenario.sends_each
        models, self.groups = scenario.models, scenario.groups
        first = FirstRequest(self.described.state, self._changed, (1.0, *models))
        made = finished(pool, pool.submit(SERVER, first, label="make the first model")).left
        self._messages: dict[int, Value[Wire]] = {0: made.message}  # by version
        self._received = dict(enumerate(made.received)) if self._changed else self._messages  # as clients decode them
        self._state = made.state
        fresh = made.clients if self.described.stateful else {}
        self.training = Training(scenario, pool, self._received, fresh, self.groups.keys(models))
        self._evaluated_clients = _evaluated_clients(scenario, self.described)
        self._last: tuple[int, PendingEvaluation] | None = None  # the last evaluation, and its version
        self.made = Moment()  # when the newest version was made
        self._collected: dict[tuple[int, ModelKey], list[Job[None, Value[Wire]]]] = {}  # by version and level

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
                return self._close(happening)
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
        self._messages[stepped.version], received, self._state = job.left
        if received:
            (self._received[stepped.version],) = received
        self.made = stepped.moment
        return PendingStep(chunks, job, weights)

    def _close(self, closed: Closed) -> PendingEvaluation | None:
        """Evaluates the newest version of the model, if it is time."""
        return self._evaluation(closed.version) if closed.evaluated else None

    def _evaluation(self, version: int) -> PendingEvaluation:
        """Evaluates the newest version of the model. Returns the earlier evaluation if it had one."""
        if self._last is None or self._last[0] != version:
            models = {level: self._served(self._messages[version], version, level) for level in self._levels}
            shards, *slices = (
                {split: self._shards(models[level], split) for split in self.scenario.evaluated_splits}
                for level in self._levels
            )
            metrics = {}
            for split, jobs in shards.items() if self.scenario.run.metrics else ():
                outputs = MetricsRequest(tuple(kept for job in jobs for kept in job.left))
                metrics[split] = self._evaluate(version, outputs)
            clients = self._evaluate_clients(self._evaluated_clients, version)
            narrow = dict(zip(self._levels[1:], slices, strict=True))
            self._last = version, PendingEvaluation(clients, shards, metrics, narrow, [*self._collecting])
        return self._last[1]

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def _shards(self, model: Served, split: str) -> list[Job[MetricSums, tuple[Value[Wire], ...]]]:
        """Evaluates all rows of a split. Outputs are kept if there are own metrics, which need them all."""
        keeps = bool(self.scenario.run.metrics) and model.level == 1
        pieces = _pieces(self.described.evaluation_rows[split])
        requests = (EvaluateRequest(split=split, first=a, last=b, model=model, keeps=keeps) for a, b in pieces)
        return [self._evaluate(model.version, request) for request in requests]

    def _served(self, message: Value[Wire], version: int, level: ModelKey) -> Served:
        """Returns the model of a level, with statistics of BatchNorm if these are collected, once for each version."""
        if self.described.pools and (version, level) not in self._collected:
            self._collected = {key: value for key, value in self._collected.items() if key[0] == version}
            bare, total = Served(message, version, level), self.described.evaluation_rows["train"]
            self._collected[version, level] = [
                self._evaluate(version, StatisticsRequest(model=bare, first=first, last=last))
                for first, last in _pieces(total)
            ]
        jobs = self._collected.get((version, level), ())
        return Served(message, version, level, tuple(job.left for job in jobs))

    @property
    def _collecting(self) -> Iterator[Job[None, Value[Wire]]]:
        return chain.from_iterable(self._collected.values())

    @property
    def _levels(self) -> tuple[ModelKey, ...]:
        """The keys of the server's models, and the levels at which one is evaluated; first that of the whole."""
        others = self.scenario.models if self.scenario.apart else ()
        return 1.0, *(level for level in self.scenario.levels if level != 1), *others

    def _evaluate(self, version: int, request: Request[Result, Left]) -> Job[Result, Left]:
        # Its priority is after the next step's training, so that it fills the gaps.
        return self.pool.submit(CLIENT, request, priority=(version + 1, 1), label=f"evaluate version {version}")

    def evaluate_unseen(self, version: int) -> PendingEvaluation:
        """Lets clients that never took part adapt to the last model, and evaluates their own models after that."""
        tested = [client for client in self.described.unseen.tolist() if self.described.held_out[client]]
        return PendingEvaluation(self._evaluate_clients(tested, version, unseen=True), {}, {}, {}, [])

    def _evaluate_clients(
        self, clients: list[int], version: int, *, unseen: bool = False
    ) -> list[tuple[list[int], Job[list[dict[str, Evaluated]], tuple[()]]]]:
        """Evaluates clients' own models. Each job takes several clients."""
        label, jobs = f"evaluate clients at version {version}", []
        for own in self._own_model_parts(clients, version, unseen=unseen):
            job = self.pool.submit(CLIENT, EvaluateClientsRequest(own), priority=(version + 1, 1), label=label)
            jobs.append((list(own.clients), job))
        return jobs

    def _own_model_parts(self, clients: list[int], version: int, *, unseen: bool) -> list[OwnModels]:
        """Returns which own models the jobs are about, with at most EVALUATION_CLIENTS clients for each job."""
        message, states = self._messages[version], self.training.states_of
        models = self.course.levels
        level = models.of if models else lambda client: 1.0
        alike: dict[ModelKey, list[int]] = {}  # by architecture
        for client in clients:
            alike.setdefault(level(client) if isinstance(models, Architectures) else 1.0, []).append(client)
        found = []
        size = EVALUATION_CLIENTS
        for part in (each[first : first + size] for each in alike.values() for first in range(0, len(each), size)):
            levels = tuple(map(level, part))
            served = tuple(self._served(message, version, one) for one in sorted(set(levels), key=str, reverse=True))
            found.append(OwnModels(tuple(part), levels, version, self.made, unseen, served, states(part)))
        return found

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
        self._collected.clear()
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

    def model_in(self, message: Value[Wire], version: int) -> dict[str, np.ndarray]:
        """Returns the model in a message as flat vectors `w` and `buffers`, and buffers of its slices if they are
        collected. version: that of the model."""
        request = FinishRequest(tuple(self._served(message, version, level) for level in self._levels))
        return finished(self.pool, self.pool.submit(SERVER, request, label="fetch the final model")).result

    def own_models(self, version: int) -> dict[str, np.ndarray]:
        """Returns clients' own last models: `client`, their numbers, and `w` and `buffers` with a row for each."""
        owns = self._own_model_parts(np.flatnonzero(self.described.samples).tolist(), version, unseen=False)
        owns += self._own_model_parts(self.described.unseen.tolist(), version, unseen=True)
        label = f"save clients at version {version}"
        jobs = [
            self.pool.submit(CLIENT, SaveClientsRequest(own), priority=(version + 1, 1), label=label) for own in owns
        ]
        found: dict[str, list[np.ndarray]] = {}
        for own, job in zip(owns, jobs, strict=True):
            vectors = {"client": np.array(own.clients), **finished(self.pool, job).result}
            for name, rows in vectors.items():
                found.setdefault(suffixed(name, own.levels[0]), []).append(rows)
        return {name: np.concatenate(rows) for name, rows in found.items()}


def _pieces(total: int) -> Iterator[tuple[int, int]]:
    """Yields the first row, and the one after the last, of each evaluation job of so many rows."""
    for first in range(0, total, EVALUATION_SHARD):
        yield first, min(first + EVALUATION_SHARD, total)


def _evaluated_clients(scenario: Scenario, described: Described) -> list[int]:
    """Returns the clients whose own models are evaluated. They are the same throughout the run."""
    tested = np.flatnonzero((described.samples > 0) & (described.held_out > 0))
    wanted = scenario.run.evaluate_clients
    drawn = generator(scenario.seed, "evaluated clients").permutation(tested)
    chosen: list[int] = drawn[: None if wanted == "all" else wanted or 0].tolist()
    return sorted(chosen)
