"""The jobs of a server step and of an evaluation, and their results once they are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any

from actors import Job
from raysim.engine import rows
from raysim.engine.simulation import Pending
from raysim.terms import ModelKey, Weight
from raysim.workers.replies import Evaluated, MetricSums, Numbers, StepReply, TrainedMember
from raysim.workers.requests import SteppedState, TrainedChunk


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


@dataclass(frozen=True)
class PendingEvaluation(Pending):
    """The evaluation of one version of the model, and of clients' own models at that time."""

    clients: list[tuple[list[int], Job[list[dict[str, Evaluated]], tuple[()]]]]
    shards: dict[str, list[Job[MetricSums, Any]]]  # by split
    metrics: dict[str, Job[Numbers, tuple[()]]]  # by split; {} without own metrics
    slices: dict[
        ModelKey, dict[str, list[Job[MetricSums, Any]]]
    ]  # by level and split: those of narrower models, or of other architectures
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
            return rows.numbers(self.of_global[split].values)
        of_each = {metric: [values[metric] for values in own] for metric in own[0]}
        return rows.numbers({metric: _mean(values) for metric, values in of_each.items()})


def _sums(jobs: Sequence[Job[MetricSums, Any]]) -> MetricSums:
    return {key: sum(job.result[key] for job in jobs) for key in jobs[0].result}


def _mean(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None
