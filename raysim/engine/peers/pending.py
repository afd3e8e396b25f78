"""The tasks of a round, and of an evaluation after it, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from actors import Job


class Trained(NamedTuple):
    """Where a peer trained: a job, whose result has a row for each of its peers."""

    job: Job
    row: int


@dataclass
class RoundTasks:
    """Of one round: the job of each chunk of mixes, and where its peers had trained before."""

    chunks: list[tuple[Job, list[Trained]]]

    @property
    def jobs(self) -> list[Job]:
        return [job for job, _ in self.chunks]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What training gave for the tables, a row a mix."""
        found = []
        for _, trained in self.chunks:
            found += [{**job.result[row]["trained"], "worker": job.worker} for job, row in trained]
        return found

    @property
    def mixing_s(self) -> float:
        """Wall seconds of mixing, summed over peers."""
        return float(sum(row["mixing_s"] for job in self.jobs for row in job.result))


@dataclass
class EvaluationTasks:
    """The evaluation of peers after a round."""

    members: list[tuple[Sequence[int], Job]]
    compared: list[Job]
    consensus: Job

    @property
    def jobs(self) -> list[Job]:
        return [*(job for _, job in self.members), *self.compared, self.consensus]

    @property
    def of_peers(self) -> list[tuple[int, dict[str, dict[str, float]]]]:
        """Of each peer, by split, sums of the metrics over the samples."""
        return [pair for peers, job in self.members for pair in zip(peers, job.result, strict=True)]

    @property
    def apart(self) -> dict[str, float]:
        """How far peers are from their mean: the root of the mean square over peers."""
        peers = sum(job.result["peers"] for job in self.compared)
        squares = {
            key: sum(job.result["squares"][key] for job in self.compared) / peers for key in self.consensus.result
        }
        return {key: max(square - self.consensus.result[key] / peers**2, 0) ** 0.5 for key, square in squares.items()}
