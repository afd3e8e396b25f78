"""The jobs of a round of peers and of the evaluation after it, and their results once they are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from actors import Job, Value
from raysim.engine.simulation import Pending
from raysim.parts.errors import BadValue
from raysim.terms import Wire
from raysim.workers.peer_requests import Mixture
from raysim.workers.replies import Apart, Evaluated, Measured, MixedPeer, TrainedMember


class TrainedAt(NamedTuple):
    """Where the result of a peer's training is: in which job, and at which place in its result."""

    job: Job[list[MixedPeer], Mixture] | None  # None: a checkpoint has recalled the result
    row: int = 0
    recalled: tuple[TrainedMember, str] | None = None

    @property
    def found(self) -> tuple[TrainedMember, str]:
        """What the training gave, and the worker that did it, once the job is done."""
        if self.job is None:
            assert self.recalled is not None
            return self.recalled
        trained = self.job.result[self.row].trained
        assert trained is not None  # this job was asked to train the peer
        return trained, self.job.ended.worker

    def note(self) -> dict[str, Any]:
        """Returns the result as plain data, once the job is done."""
        trained, worker = self.found
        return {**trained._asdict(), "numbers": trained.numbers._asdict(), "worker": worker}

    @classmethod
    def noted(cls, note: dict[str, Any]) -> TrainedAt:
        """Returns the place of a result that `note` returned before."""
        trained = TrainedMember(Measured(**note["numbers"]), note["passes"], note["diverged"])
        return cls(None, recalled=(trained, note["worker"]))


@dataclass(frozen=True)
class PendingPeersEvaluation(Pending):
    """The evaluation of peers after a round."""

    evaluated: list[tuple[Sequence[int], Job[list[dict[str, Evaluated]], tuple[()]]]]
    compared: list[Job[Apart, Value[Wire]]]
    consensus: Job[dict[str, float], tuple[()]]

    @property
    def jobs(self) -> Sequence[Job[Any, Any]]:
        return [*(job for _, job in self.evaluated), *self.compared, self.consensus]

    @property
    def of_peers(self) -> list[tuple[int, dict[str, Evaluated]]]:
        """Pairs of a peer that was evaluated and what that gave, by split."""
        return [pair for peers, job in self.evaluated for pair in zip(peers, job.result, strict=True)]

    @property
    def apart(self) -> dict[str, float]:
        """By metric, how far peers are from their mean: the square root of the mean squared distance."""
        peers = sum(job.result.peers for job in self.compared)
        squares = {key: sum(job.result.squares[key] for job in self.compared) / peers for key in self.consensus.result}
        return {key: max(square - self.consensus.result[key] / peers**2, 0) ** 0.5 for key, square in squares.items()}


@dataclass(frozen=True)
class PendingRound(Pending):
    """A round: for each chunk of mixes, its job and where its peers had trained before, by their rows in the job's
    result; and the evaluation, if any."""

    chunks: list[tuple[Job[list[MixedPeer], Mixture], dict[int, TrainedAt]]]
    evaluation: PendingPeersEvaluation | None

    @property
    def mixes(self) -> list[Job[list[MixedPeer], Mixture]]:
        return [job for job, _ in self.chunks]

    @property
    def jobs(self) -> Sequence[Job[Any, Any]]:
        return [*self.mixes, *(self.evaluation.jobs if self.evaluation else ())]

    @property
    def trained(self) -> list[tuple[TrainedMember, str]]:
        """For each mix of the round, what the peer's training before it gave, and the worker that did it.

        Its numbers are those of the training and of the mix.
        """
        pairs = ((at, job.result[row]) for job, earlier in self.chunks for row, at in earlier.items())
        found = ((*at.found, mixed) for at, mixed in pairs)
        return [(_with(trained, mixed), worker) for trained, worker, mixed in found]

    @property
    def passes(self) -> float:
        """Samples that passed through the network, summed over the mixes of the round and the trainings before them."""
        mixes = sum(mixed.passes for job in self.mixes for mixed in job.result)
        return mixes + sum(at.found[0].passes for _, earlier in self.chunks for at in earlier.values())

    @property
    def mixing_s(self) -> float:
        """Wall seconds of mixing, summed over the mixes of the round."""
        return sum(mixed.mixing_s for job in self.mixes for mixed in job.result)


def _with(trained: TrainedMember, mixed: MixedPeer) -> TrainedMember:
    """Adds what a mix logged. Raises ValueError if training has logged a number of that name, too."""
    columns, own = trained.numbers
    twice = [name for name in mixed.columns if columns.get(name) is not None]
    if both := sorted([*twice, *(own.keys() & mixed.own.keys())]):
        text = "must be given other names in `mix` than in `local`, because they share a row"
        raise BadValue(f"task.log: {text}, got {', '.join(both)} in both; rename them")
    return trained._replace(numbers=Measured({**columns, **mixed.columns}, {**own, **mixed.own}))
