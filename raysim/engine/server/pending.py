"""The jobs of a server step, and of an evaluation, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from actors import Job
from raysim.engine.pending import Pending
from raysim.workers.replies import MetricSums, StepReply, TrainedClient


@dataclass
class PendingStep(Pending):
    """A server step, and the chunks of clients that it waits for."""

    chunks: list[Job[list[TrainedClient]]]
    step: Job[StepReply]
    weights: list[float] | None  # of the updates

    @property
    def jobs(self) -> Sequence[Job[Any]]:
        return [*self.chunks, self.step]

    @property
    def undone(self) -> int:
        """The step is done last."""
        return 0 if self.step.done else super().undone

    @property
    def updates(self) -> list[dict[str, Any]]:
        """What training gave for the table `updates`, a row each, in order of dispatch."""
        return [_row(trained, chunk.worker) for chunk in self.chunks for trained in chunk.result]


def _row(trained: TrainedClient, worker: str) -> dict[str, Any]:
    row = {**trained.columns._asdict(), "worker": worker}
    return row | {"samples_seen": trained.samples_seen, "up_bytes": trained.up_bytes, "down_bytes": trained.down_bytes}


@dataclass
class PendingEvaluation(Pending):
    """The evaluation of one version of the model, and of clients' own models at that time."""

    clients: list[tuple[list[int], Job[list[MetricSums]]]]
    shards: dict[str, list[Job[MetricSums]]] = field(default_factory=dict)  # by split

    @property
    def jobs(self) -> Sequence[Job[Any]]:
        return [*chain.from_iterable(self.shards.values()), *(job for _, job in self.clients)]

    @property
    def of_server(self) -> dict[str, MetricSums]:
        """By split, sums of the server's model's metrics over all its samples."""
        return {
            split: {key: sum(job.result[key] for job in jobs) for key in jobs[0].result}
            for split, jobs in self.shards.items()
        }

    @property
    def of_clients(self) -> list[tuple[int, MetricSums]]:
        """For each client that was evaluated, sums of its own model's metrics over its own test samples."""
        return [pair for clients, job in self.clients for pair in zip(clients, job.result, strict=True)]
