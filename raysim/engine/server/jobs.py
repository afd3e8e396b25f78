"""What a run with a server hands to its pool: training, server steps, evaluation. It knows which model is where."""

from __future__ import annotations

import numpy as np

from actors import Group, Job, Pool, Value, finished
from raysim.engine.server.pending import EvaluationTasks, StepTasks
from raysim.engine.server.training import Training
from raysim.rng import generator
from raysim.scenario import Scenario
from raysim.workers.protocol import CLIENT, SERVER, Described, MakeWorker, WorkPerClient
from raysim.world import Work
from raysim.world.server_timeline import Closed, Dispatched, Stepped

EVALUATION_SHARD = 2000  # samples in an evaluation task; fixed, for the sum of losses depends on it
EVALUATION_CLIENTS = 25  # clients in one


class Tasks:
    """Submits a run's jobs. All states are values of the pool: none of them passes through here."""

    def __init__(self, scenario: Scenario, pool: Pool) -> None:
        self.scenario, self.pool = scenario, pool
        # So many tasks are handed out ahead of what is done: enough that no worker waits, few enough that few model
        # versions and updates are alive.
        self.ahead = 6 * scenario.resources.client_actors
        self._messages: dict[int, Value] = {}  # by version
        self._evaluated: tuple[int, EvaluationTasks] | None = None

    def start(self) -> Described:
        """Makes the workers and loads the data."""
        resources = self.scenario.resources
        for name, workers, cpus, gpus in (
            (SERVER, resources.aggregators, 0.0, resources.gpus_per_aggregator),
            (CLIENT, resources.client_actors, resources.cpus_per_client, resources.gpus_per_client),
        ):
            self.pool.start(Group(name, MakeWorker(self.scenario, gpus, serves=name == SERVER), workers, cpus, gpus))
        load = finished(self.pool, self.pool.submit(SERVER, "load", values=1, label="load data"))
        described: Described = load.result
        self.described = described
        for group in (SERVER, CLIENT):
            self.pool.broadcast(group, "attach", *load.values)
        first = self.pool.submit(SERVER, "first", values=2 + len(described.state), label="make the first model")
        self._messages[0], fresh, *state = finished(self.pool, first).values
        self.training = Training(self.scenario, self.pool, described, self._messages, fresh)
        self._state = dict(zip(described.state, state, strict=True))
        tested = np.flatnonzero((described.samples > 0) & (described.held_out > 0))
        wanted = self.scenario.run.evaluate_clients
        drawn = generator(self.scenario.seed, "evaluated clients").permutation(tested)
        self._evaluated_clients = sorted(drawn[: None if wanted == "all" else wanted or 0].tolist())
        self._unseen = [client for client in described.unseen.tolist() if described.held_out[client]]
        return described

    def work(self) -> WorkPerClient:
        """What an update costs."""
        job = finished(self.pool, self.pool.submit(SERVER, "work", label="measure the work of an update"))
        cost: WorkPerClient = job.result
        self.cost = cost
        return cost

    def worked(self, dispatched: Dispatched) -> Work:
        """The work of a client that was begun, once it is done."""
        return self.training.worked(dispatched, self.cost)

    def step(self, stepped: Stepped, weights: list[float] | None) -> StepTasks:
        """Trains the members of a server step, unless they were begun before, then steps."""
        factors = None
        if self.scenario.follows_work:
            chunks, factors = self.training.take(stepped, weights)
        else:
            chunks = self.training.train(stepped, weights)
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
                *self.training.states_of(some),
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
        job = self.pool.submit(SERVER, "finish", self._messages[version], label="fetch the final model")
        model: dict[str, np.ndarray] = finished(self.pool, job).result
        return model

    def clients(self, version: int) -> dict[str, np.ndarray]:
        """The last model of each client's own: `client`, their numbers, and `w` and `buffers`, a row each."""
        taking_part = np.flatnonzero(self.described.samples).tolist()
        jobs = self._of_clients("save_clients", taking_part, version)
        jobs += self._of_clients("save_clients", self.described.unseen.tolist(), version, unseen=True)
        vectors = [finished(self.pool, job).result for _, job in jobs]
        numbers = np.array([client for some, _ in jobs for client in some])
        return {"client": numbers, **{key: np.concatenate([v[key] for v in vectors]) for key in vectors[0]}}
