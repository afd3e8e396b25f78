"""The tasks of a server step, and of an evaluation, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from actors import Job
from raysim.workers import tables


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
