"""What passes between the scheduler and workers that host peers; no tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from raysim.scenario import Scenario

if TYPE_CHECKING:
    from raysim.workers.peers import PeersWorker


@dataclass(frozen=True)
class MakePeersWorker:
    """What each actor calls once. gpus: how much of one it may use; 0: none."""

    scenario: Scenario
    gpus: float

    def __call__(self) -> PeersWorker:
        from raysim.workers.peers import PeersWorker

        return PeersWorker(self.scenario, self.gpus)


class At(NamedTuple):
    """Where something of a peer is among the values that a job gets."""

    value: int
    row: int


class Turn(NamedTuple):
    """A peer's part in a job: it mixes, or gets its first state; then it trains, if it will mix again."""

    peer: int
    mixes: int  # so far, this one included; 0: it gets its first state
    draft: At | None  # None: as it has none yet
    message: At | None  # its own
    inbox: tuple[At, ...]
    weights: tuple[float, ...]  # W_ij of the messages in the inbox
    trains: bool
    kept: bool  # the state between mixing and training


class Member(NamedTuple):
    """A peer that is evaluated."""

    peer: int
    state: At


class WorkPerPeer(NamedTuple):
    """What training and mixing cost."""

    forward_flops: float  # of a sample's forward pass
    passes: float  # of samples beside local training, by predictions and in mixing; a forward pass is one
    passes_per_neighbour: float  # those that a neighbour adds
    message_bytes: int
