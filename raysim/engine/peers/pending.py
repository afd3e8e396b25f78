"""The jobs of a round of peers, and of an evaluation after it, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from actors import Job
from raysim.engine.pending import Pending
from raysim.workers.replies import Apart, MetricSums, MixedPeer, TrainedPeer


class TrainedAt(NamedTuple):
    """Where a peer trained: a job, whose result has an item for each of its peers."""

    job: Job[list[MixedPeer]]
    row: int

    @property
    def trained(self) -> TrainedPeer:
        """What became of it, once the job is done."""
        found = self.job.result[self.row].trained
        assert found is not None  # it was to train
        return found


@dataclass
class PendingPeersEvaluation(Pending):
    """The evaluation of peers after a round."""

    evaluated: list[tuple[Sequence[int], Job[list[dict[str, MetricSums]]]]]
    compared: list[Job[Apart]]
    consensus: Job[dict[str, float]]

    @property
    def jobs(self) -> Sequence[Job[Any]]:
        return [*(job for _, job in self.evaluated), *self.compared, self.consensus]

    @property
    def of_peers(self) -> list[tuple[int, dict[str, MetricSums]]]:
        """For each peer that was evaluated, by split, sums of its metrics."""
        return [pair for peers, job in self.evaluated for pair in zip(peers, job.result, strict=True)]

    @property
    def apart(self) -> dict[str, float]:
        """How far peers are from their mean: the root of the mean square over peers."""
        peers = sum(job.result.peers for job in self.compared)
        squares = {key: sum(job.result.squares[key] for job in self.compared) / peers for key in self.consensus.result}
        return {key: max(square - self.consensus.result[key] / peers**2, 0) ** 0.5 for key, square in squares.items()}


@dataclass
class PendingRound(Pending):
    """A round: the job of each chunk of mixes, and where its peers had trained before; and the evaluation after it."""

    chunks: list[tuple[Job[list[MixedPeer]], list[TrainedAt]]]
    evaluation: PendingPeersEvaluation | None

    @property
    def mixes(self) -> list[Job[list[MixedPeer]]]:
        return [job for job, _ in self.chunks]

    @property
    def jobs(self) -> Sequence[Job[Any]]:
        return [*self.mixes, *(self.evaluation.jobs if self.evaluation else ())]

    @property
    def trained(self) -> list[tuple[TrainedPeer, str]]:
        """What training gave, and which worker did it, a mix each."""
        return [(at.trained, at.job.worker) for _, of_chunk in self.chunks for at in of_chunk]

    @property
    def mixing_s(self) -> float:
        """Wall seconds of mixing, summed over peers."""
        return sum(mixed.mixing_s for job in self.mixes for mixed in job.result)
