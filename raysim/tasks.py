"""What a run hands to its pool: training, server steps, evaluation. It knows which model and client state is where."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from actors import Group, Job, Pool, Value
from raysim import tables
from raysim.protocol import Described, MakeWorker, Member, WorkPerClient
from raysim.rng import generator
from raysim.scenario import Scenario
from raysim.world import Work
from raysim.world.timeline import Closed, Dispatched, Stepped

EVALUATION_SHARD = 2000  # samples in an evaluation task; fixed, for the sum of losses depends on it
EVALUATION_CLIENTS = 25  # clients in one

CLIENT, SERVER = "client", "aggregator"


@dataclass
class StepTasks:
    """A server step and the chunks of clients that it waits for."""

    chunks: list[Job]
    job: Job
    weights: list[float] | None  # of the updates

    @property
    def done(self) -> bool:
        return self.job.done

    @property
    def jobs(self) -> list[Job]:
        """All of them."""
        return [*self.chunks, self.job]

    @property
    def undone(self) -> int:
        """Tasks that are not done."""
        return sum(not job.done for job in self.jobs)

    @property
    def members(self) -> list[dict[str, Any]]:
        """What training gave for the tables, a row an update, in order of dispatch."""
        return [{**row, "worker": chunk.worker} for chunk in self.chunks for row in chunk.result]

    @property
    def seconds(self) -> float:
        """Of the step itself."""
        return self.job.took.seconds

    @property
    def shown(self) -> tables.Shown:
        """What the step gave for the tables."""
        given: tables.Shown = self.job.result
        return given


@dataclass
class EvaluationTasks:
    """The evaluation of one version of the model, and of clients' own models at that time."""

    clients: list[tuple[list[int], Job]]
    shards: dict[str, list[Job]] = field(default_factory=dict)  # by split

    @property
    def jobs(self) -> list[Job]:
        """All of them."""
        return [*chain.from_iterable(self.shards.values()), *(job for _, job in self.clients)]

    @property
    def undone(self) -> int:
        """Tasks that are not done."""
        return sum(not job.done for job in self.jobs)

    @property
    def done(self) -> bool:
        return self.undone == 0

    @property
    def of_server(self) -> dict[str, dict[str, float]]:
        """By split, sums of the metrics over all its samples."""
        return {
            split: {key: sum(job.result[key] for job in jobs) for key in jobs[0].result}
            for split, jobs in self.shards.items()
        }

    @property
    def of_clients(self) -> list[tuple[int, dict[str, float]]]:
        """The same of each client."""
        return [pair for clients, job in self.clients for pair in zip(clients, job.result, strict=True)]


class Tasks:
    """Submits a run's jobs. All states are values of the pool: none of them passes through here."""

    def __init__(self, scenario: Scenario, pool: Pool) -> None:
        self.scenario, self.pool = scenario, pool
        self.follows_work = scenario.follows_work
        # So many tasks are handed out ahead of what is done: enough that no worker waits, few enough that few model
        # versions and updates are alive.
        self.ahead = 6 * scenario.resources.client_actors
        self._messages: dict[int, Value] = {}  # by version
        self._states: dict[int, Value] = {}  # by client, after the last step that used its update
        self._started: dict[int, Job] = {}  # by dispatch: of one client, trained before it is known what becomes of it
        self._next: dict[int, Value] = {}  # by client, after its last update that a step has used or may use yet
        self._evaluated: tuple[int, EvaluationTasks] | None = None

    def start(self) -> Described:
        """Makes the workers and loads the data."""
        resources = self.scenario.resources
        for name, workers, cpus, gpus in (
            (SERVER, resources.aggregators, 0.0, resources.gpus_per_aggregator),
            (CLIENT, resources.client_actors, resources.cpus_per_client, resources.gpus_per_client),
        ):
            self.pool.start(Group(name, MakeWorker(self.scenario, gpus), workers, cpus, gpus))
        load = self._finished(self.pool.submit(SERVER, "load", values=1, label="load data"))
        described: Described = load.result
        self.described = described
        for group in (SERVER, CLIENT):
            self.pool.broadcast(group, "attach", *load.values)
        first = self.pool.submit(SERVER, "first", values=2 + len(described.state), label="make the first model")
        self._messages[0], self._fresh, *state = self._finished(first).values
        self._state = dict(zip(described.state, state, strict=True))
        tested = np.flatnonzero((described.samples > 0) & (described.held_out > 0))
        wanted = self.scenario.run.evaluate_clients
        drawn = generator(self.scenario.seed, "evaluated clients").permutation(tested)
        self._evaluated_clients = sorted(drawn[: None if wanted == "all" else wanted or 0].tolist())
        self._unseen = [client for client in described.unseen.tolist() if described.held_out[client]]
        return described

    def work(self) -> WorkPerClient:
        """What an update costs."""
        job = self._finished(self.pool.submit(SERVER, "work", label="measure the work of an update"))
        cost: WorkPerClient = job.result
        self.cost = cost
        return cost

    def _finished(self, job: Job) -> Job:
        while not job.done:
            self.pool.wait()
        return job

    def begin(self, dispatched: Dispatched) -> None:
        """Trains a client at once, for the time of its arrival depends on the work done.

        Its update stays by itself: with which weight it will be summed, if at all, is not known yet.
        """
        client = dispatched.client
        states = [self._next.get(client, self._fresh)] if self.described.stateful else []
        member = Member(client, dispatched.number, dispatched.version, message=0, weight=1.0, share=1.0)
        job = self._submit((member,), [dispatched.version], states, (dispatched.version + 1, 0), summed=False)
        self._started[dispatched.serial] = job
        if states:
            self._next[client] = job.values[1]

    def worked(self, dispatched: Dispatched) -> Work:
        """The work of a client that was begun, once it is done."""
        (row,) = self._finished(self._started[dispatched.serial]).result
        cost = self.cost
        return Work(cost.flops_per_sample * row["samples_seen"], cost.down_bytes, cost.up_bytes)

    def drop(self, dispatched: Dispatched) -> None:
        """Forgets what a client did, if it was begun: no step will use it."""
        job = self._started.pop(dispatched.serial, None)
        if job is not None and self.described.stateful:
            self._next[dispatched.client] = self._states.get(dispatched.client, self._fresh)

    def step(self, stepped: Stepped, weights: list[float] | None) -> StepTasks:
        """Trains the members of a server step, unless they were begun before, then steps."""
        factors = None
        if self.follows_work:
            chunks, factors = self._take(stepped, weights)
        else:
            chunks = self._train_all(stepped, weights)
        job = self.pool.submit(
            SERVER,
            "step",
            stepped.version,
            stepped.arrivals,
            weights is not None,
            factors,
            self.described.state,
            *self._state.values(),
            *(chunk.values[0] for chunk in chunks),
            values=1 + len(self._state),
            priority=(stepped.version,),
            label=f"step to version {stepped.version}",
            together=True,
        )
        self._messages[stepped.version], *state = job.values
        self._state = dict(zip(self._state, state, strict=True))
        return StepTasks(chunks, job, weights)

    def _take(self, stepped: Stepped, weights: list[float] | None) -> tuple[list[Job], list[tuple[float, float]]]:
        """The members' jobs, and with which weights updates and buffers are summed."""
        samples = sum(arrival.samples for arrival in stepped.arrivals)
        shares = [arrival.samples / samples for arrival in stepped.arrivals]
        jobs = [self._started.pop(dispatched.serial) for dispatched in stepped.members]
        if self.described.stateful:
            for dispatched, job in zip(stepped.members, jobs, strict=True):
                self._states[dispatched.client] = job.values[1]
        return jobs, list(zip(weights or [1.0] * len(jobs), shares, strict=True))

    def _train_all(self, stepped: Stepped, weights: list[float] | None) -> list[Job]:
        chunks, place = [], 0
        for members in chunk(stepped.members, self.scenario.resources.chunk):
            chosen = None if weights is None else weights[place : place + len(members)]
            chunks.append(self._train(stepped, members, chosen))
            place += len(members)
        return chunks

    def _train(self, stepped: Stepped, members: list[Dispatched], weights: list[float] | None) -> Job:
        versions = sorted({member.version for member in members})
        samples = sum(arrival.samples for arrival in stepped.arrivals)
        spec = tuple(
            Member(
                client=d.client,
                number=d.number,
                version=d.version,
                message=versions.index(d.version),
                weight=1.0 if weights is None else weights[place],
                share=int(self.described.samples[d.client]) / samples,
            )
            for place, d in enumerate(members)
        )
        states = self._states_of([d.client for d in members])
        job = self._submit(spec, versions, states, (stepped.version, 0), summed=weights is not None)
        for dispatched, state in zip(members, job.values[1:], strict=False):
            self._states[dispatched.client] = state
        return job

    def _submit(
        self,
        members: tuple[Member, ...],
        versions: list[int],
        states: list[Value],
        priority: tuple[int, ...],
        *,
        summed: bool,
    ) -> Job:
        return self.pool.submit(
            CLIENT,
            "train",
            members,
            summed,
            len(versions),
            *(self._messages[version] for version in versions),
            *states,
            values=1 + len(states),
            priority=priority,
            label=f"train for version {priority[0]}",
        )

    def _states_of(self, clients: list[int]) -> list[Value]:
        return [self._states.get(client, self._fresh) for client in clients] if self.described.stateful else []

    def evaluate(self, closed: Closed) -> EvaluationTasks:
        """Evaluates the newest model, unless that was done already."""
        if self._evaluated is None or self._evaluated[0] != closed.version:
            tasks = EvaluationTasks(self._of_clients("evaluate_clients", self._evaluated_clients, closed.version))
            for split in self.scenario.run.evaluate_on:
                tasks.shards[split] = self._shards(closed, split)
            self._evaluated = closed.version, tasks
        return self._evaluated[1]

    def _shards(self, closed: Closed, split: str) -> list[Job]:
        total = self.described.evaluation_rows[split]
        return [
            self.pool.submit(
                CLIENT,
                "evaluate",
                split,
                first,
                min(first + EVALUATION_SHARD, total),
                self._messages[closed.version],
                priority=(closed.version + 1, 1),  # in the gaps of the next step's training
                label=f"evaluate version {closed.version}",
            )
            for first in range(0, total, EVALUATION_SHARD)
        ]

    def evaluate_unseen(self, version: int) -> EvaluationTasks:
        """Lets clients that never took part adapt to the last model, and evaluates what they then predict with."""
        return EvaluationTasks(self._of_clients("evaluate_clients", self._unseen, version, unseen=True))

    def _of_clients(
        self, method: str, clients: list[int], version: int, *, unseen: bool = False
    ) -> list[tuple[list[int], Job]]:
        """What is done with clients' own models, some clients a job."""
        jobs = []
        for first in range(0, len(clients), EVALUATION_CLIENTS):
            some = clients[first : first + EVALUATION_CLIENTS]
            job = self.pool.submit(
                CLIENT,
                method,
                tuple(some),
                version,
                unseen,
                self._messages[version],
                *self._states_of(some),
                priority=(version + 1, 1),
                label=f"{method.replace('_', ' ')} at version {version}",
            )
            jobs.append((some, job))
        return jobs

    def forget(self, live: set[int], newest: int) -> None:
        """Lets go of the versions that no update to come starts from."""
        for version in [version for version in self._messages if version != newest and version not in live]:
            del self._messages[version]

    def finish(self, version: int) -> dict[str, np.ndarray]:
        """The final model's flat vectors."""
        job = self._finished(self.pool.submit(SERVER, "finish", self._messages[version], label="fetch the final model"))
        model: dict[str, np.ndarray] = job.result
        return model

    def clients(self, version: int) -> dict[str, np.ndarray]:
        """The last model of each client's own: `client`, their numbers, and `w` and `buffers`, a row each."""
        taking_part = np.flatnonzero(self.described.samples).tolist()
        jobs = self._of_clients("save_clients", taking_part, version)
        jobs += self._of_clients("save_clients", self.described.unseen.tolist(), version, unseen=True)
        vectors = [self._finished(job).result for _, job in jobs]
        numbers = np.array([client for some, _ in jobs for client in some])
        return {"client": numbers, **{key: np.concatenate([v[key] for v in vectors]) for key in vectors[0]}}


def chunk(members: tuple[Dispatched, ...], size: int) -> list[list[Dispatched]]:
    """Consecutive members, `size` of them or fewer; cut where a client comes again, whose state is then another."""
    chunks: list[list[Dispatched]] = []
    for member in members:
        full = not chunks or len(chunks[-1]) == size
        if full or any(member.client == other.client for other in chunks[-1]):
            chunks.append([])
        chunks[-1].append(member)
    return chunks
