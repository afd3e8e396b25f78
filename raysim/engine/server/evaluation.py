"""Submits the jobs of evaluation in a run with a server, and has their results once they are done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from actors import Job, Pool, Request, Value, finished
from raysim.clients.capacity import Levels
from raysim.clients.group import Architectures
from raysim.engine.recorder import numbers
from raysim.engine.simulation import Pending
from raysim.parts.rng import generator
from raysim.scenario import Scenario
from raysim.terms import ModelKey, Moment, Wire, suffixed
from raysim.workers.replies import ClientWire, Described, Evaluated, MetricSums, Numbers
from raysim.workers.requests import (
    EvaluateClientsRequest,
    EvaluateRequest,
    FinishRequest,
    MetricsRequest,
    OwnModels,
    SaveClientsRequest,
    Served,
    StatisticsRequest,
)
from raysim.workers.workshop import CLIENT, SERVER

Result = TypeVar("Result")
Left = TypeVar("Left")

EVALUATION_SHARD = 2500  # samples in an evaluation job; fixed, because it decides the bits of the sum of losses
EVALUATION_CLIENTS = 25  # clients in a job that evaluates or saves clients' own models


@dataclass(frozen=True)
class PendingEvaluation(Pending):
    """The evaluation of one version of the model, and of clients' own models at that time."""

    clients: list[tuple[list[int], Job[list[dict[str, Evaluated]], tuple[()]]]]
    shards: dict[str, list[Job[MetricSums, Any]]]  # by split
    metrics: dict[str, Job[Numbers, tuple[()]]]  # by split; {} without own metrics
    # By level and split: those of narrower models, or of other architectures.
    slices: dict[ModelKey, dict[str, list[Job[MetricSums, Any]]]]
    statistics: list[Job[None, Any]]  # that collect statistics of BatchNorm; [] if models have them

    @property
    def jobs(self) -> Sequence[Job[Any, Any]]:
        shards = chain.from_iterable(jobs for of in (self.shards, *self.slices.values()) for jobs in of.values())
        return [*self.statistics, *shards, *self.metrics.values(), *(job for _, job in self.clients)]

    @property
    def of_global(self) -> dict[str, Evaluated]:
        """By split, the result of evaluating the global model on all samples."""
        own = {split: job.result for split, job in self.metrics.items()}
        return {split: Evaluated(_sums(jobs), own.get(split, {})) for split, jobs in self.shards.items()}

    @property
    def of_slices(self) -> list[tuple[ModelKey, str, Evaluated]]:
        """A level, a split, and what evaluating the slice of the global model gave."""
        return [
            (level, split, Evaluated(_sums(jobs), {}))
            for level, of in self.slices.items()
            for split, jobs in of.items()
        ]

    @property
    def of_clients(self) -> list[tuple[int, str, Evaluated]]:
        """A client, a split, and what evaluating the client's own model on its own samples of the split gave."""
        found = [pair for clients, job in self.clients for pair in zip(clients, job.result, strict=True)]
        return [(client, split, evaluated) for client, on in found for split, evaluated in on.items()]

    def shown(self, split: str) -> dict[str, float]:
        """Returns the metrics on a split that progress shows: the mean over clients if their own models are evaluated
        on it, else those of the global model. Metrics that are not defined are NaN."""
        own = [evaluated.values for _, on, evaluated in self.of_clients if on == split]
        if not own:
            return numbers(self.of_global[split].values)
        of_each = {metric: [values[metric] for values in own] for metric in own[0]}
        return numbers({metric: _mean(values) for metric, values in of_each.items()})


def _sums(jobs: Sequence[Job[MetricSums, Any]]) -> MetricSums:
    return {key: sum(job.result[key] for job in jobs) for key in jobs[0].result}


def _mean(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


class Evaluations:
    """Evaluates versions of the model, and clients' own models. It never sees their tensors.

    made: when the newest version was made, which the caller updates.
    """

    def __init__(
        self,
        scenario: Scenario,
        pool: Pool,
        described: Described,
        levels: Levels | Architectures | None,
        messages: Mapping[int, Value[Wire]],
        states_of: Callable[[list[int]], tuple[Value[ClientWire], ...]],
    ) -> None:
        """levels: of clients, as in `Course`. messages: by version. states_of: returns clients' states."""
        self._scenario, self._pool, self._described = scenario, pool, described
        self._levels_of_clients, self._messages, self._states_of = levels, messages, states_of
        self._clients = _evaluated_clients(scenario, described)
        self._last: tuple[int, PendingEvaluation] | None = None  # the last evaluation, and its version
        self._collected: dict[tuple[int, ModelKey], list[Job[None, Value[Wire]]]] = {}  # by version and level
        self.made = Moment()

    def of(self, version: int) -> PendingEvaluation:
        """Evaluates the newest version of the model. Returns the earlier evaluation if it had one."""
        if self._last is None or self._last[0] != version:
            models = {level: self._served(self._messages[version], version, level) for level in self._levels}
            shards, *slices = (
                {split: self._shards(models[level], split) for split in self._scenario.evaluated_splits}
                for level in self._levels
            )
            metrics = {}
            for split, jobs in shards.items() if self._scenario.run.metrics else ():
                outputs = MetricsRequest(tuple(kept for job in jobs for kept in job.left))
                metrics[split] = self._evaluate(version, outputs)
            clients = self._evaluate_clients(self._clients, version)
            narrow = dict(zip(self._levels[1:], slices, strict=True))
            self._last = version, PendingEvaluation(clients, shards, metrics, narrow, [*self._collecting])
        return self._last[1]

    def _shards(self, model: Served, split: str) -> list[Job[MetricSums, tuple[Value[Wire], ...]]]:
        """Evaluates all rows of a split. Outputs are kept if there are own metrics, which need them all."""
        keeps = bool(self._scenario.run.metrics) and model.level == 1
        pieces = _pieces(self._described.evaluation_rows[split])
        requests = (EvaluateRequest(split=split, first=a, last=b, model=model, keeps=keeps) for a, b in pieces)
        return [self._evaluate(model.version, request) for request in requests]

    def _served(self, message: Value[Wire], version: int, level: ModelKey) -> Served:
        """Returns the model of a level, with statistics of BatchNorm if these are collected, once for each version."""
        if self._described.pools and (version, level) not in self._collected:
            self._collected = {key: value for key, value in self._collected.items() if key[0] == version}
            bare, total = Served(message, version, level), self._described.evaluation_rows["train"]
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
        others = self._scenario.models if self._scenario.apart else ()
        return 1.0, *(level for level in self._scenario.levels if level != 1), *others

    def _evaluate(self, version: int, request: Request[Result, Left]) -> Job[Result, Left]:
        # Its priority is after the next step's training, so that it fills the gaps.
        return self._pool.submit(CLIENT, request, priority=(version + 1, 1), label=f"evaluate version {version}")

    def of_unseen(self, version: int) -> PendingEvaluation:
        """Lets clients that never took part adapt to the last model, and evaluates their own models after that."""
        tested = [client for client in self._described.unseen.tolist() if self._described.held_out[client]]
        return PendingEvaluation(self._evaluate_clients(tested, version, unseen=True), {}, {}, {}, [])

    def _evaluate_clients(
        self, clients: list[int], version: int, *, unseen: bool = False
    ) -> list[tuple[list[int], Job[list[dict[str, Evaluated]], tuple[()]]]]:
        """Evaluates clients' own models. Each job takes several clients."""
        label, jobs = f"evaluate clients at version {version}", []
        for own in self._own_model_parts(clients, version, unseen=unseen):
            job = self._pool.submit(CLIENT, EvaluateClientsRequest(own), priority=(version + 1, 1), label=label)
            jobs.append((list(own.clients), job))
        return jobs

    def _own_model_parts(self, clients: list[int], version: int, *, unseen: bool) -> list[OwnModels]:
        """Returns which own models the jobs are about, with at most EVALUATION_CLIENTS clients for each job."""
        message, states = self._messages[version], self._states_of
        models = self._levels_of_clients
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

    def forget(self) -> None:
        """Forgets what has been collected of versions that may be made anew."""
        self._collected.clear()

    # --- models -------------------------------------------------------------------------------------------------------

    def model_in(self, message: Value[Wire], version: int) -> dict[str, np.ndarray]:
        """Returns the model in a message as flat vectors `w` and `buffers`, and buffers of its slices if they are
        collected. version: that of the model."""
        request = FinishRequest(tuple(self._served(message, version, level) for level in self._levels))
        return finished(self._pool, self._pool.submit(SERVER, request, label="fetch the final model")).result

    def own_models(self, version: int) -> dict[str, np.ndarray]:
        """Returns clients' own last models: `client`, their numbers, and `w` and `buffers` with a row for each."""
        owns = self._own_model_parts(np.flatnonzero(self._described.samples).tolist(), version, unseen=False)
        owns += self._own_model_parts(self._described.unseen.tolist(), version, unseen=True)
        label = f"save clients at version {version}"
        jobs = [
            self._pool.submit(CLIENT, SaveClientsRequest(own), priority=(version + 1, 1), label=label) for own in owns
        ]
        found: dict[str, list[np.ndarray]] = {}
        for own, job in zip(owns, jobs, strict=True):
            vectors = {"client": np.array(own.clients), **finished(self._pool, job).result}
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
