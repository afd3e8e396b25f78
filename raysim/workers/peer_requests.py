"""What the engine asks of workers in a run without a server: one frozen value for each kind of job.

What belongs to peers lies in values with a row for each of several peers; a `Place` says where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from actors import Answer, Gang, Request, Value
from raysim.workers.replies import Apart, MetricSums, MixedPeer, PeerCost

if TYPE_CHECKING:
    from raysim.workers.peers import PeersWorker
    from raysim.workers.wire import Wire

Row = TypeVar("Row")
Own: TypeAlias = "tuple[Wire, Wire]"
"""A peer's draft and its state, {} where there is none."""


class Place(NamedTuple, Generic[Row]):
    """Where something of a peer is: a row of a value."""

    value: Value[tuple[Row, ...]]
    row: int

    @property
    def content(self) -> Row:
        """What is there, on the worker that got it."""
        found: Row = self.value.content[self.row]
        return found


@dataclass(frozen=True)
class PeerCostRequest(Request[PeerCost]):
    """Measure what a peer's training and mixing cost."""

    name = "cost"

    def call(self, worker: PeersWorker, gang: Gang) -> Answer[PeerCost]:
        return Answer(worker.cost())


class Turn(NamedTuple):
    """A peer's part in a job: it mixes, or gets its first state; then it trains, if it will mix again."""

    peer: int
    mixes: int  # so far, this one included; 0: it gets its first state
    draft: Place[Own] | None  # None: it has none yet
    message: Place[Wire] | None  # its own; None: it has none yet
    inbox: tuple[Place[Wire], ...]
    weights: tuple[float, ...]  # W_ij of the messages in the inbox
    trains: bool
    kept: bool  # whether the state between mixing and training is kept


@dataclass(frozen=True)
class MixRequest(Request[list[MixedPeer]]):
    """Mix what peers and their neighbours have, and train for the next mix, one peer after another.

    Leaves drafts and states, a row a peer, and messages, a row a peer.
    """

    name = "mix"
    leaves = 2
    turns: tuple[Turn, ...]

    def call(self, worker: PeersWorker, gang: Gang) -> Answer[list[MixedPeer]]:
        return worker.mix(self)


class PeerState(NamedTuple):
    """A peer, and where its state is."""

    peer: int
    own: Place[Own]


@dataclass(frozen=True)
class EvaluatePeersRequest(Request[list[dict[str, MetricSums]]]):
    """Evaluate peers, each on all samples of each split."""

    name = "evaluate"
    version: int  # rounds so far
    peers: tuple[PeerState, ...]

    def call(self, worker: PeersWorker, gang: Gang) -> Answer[list[dict[str, MetricSums]]]:
        return Answer(worker.evaluate(self))


@dataclass(frozen=True)
class CompareRequest(Request[Apart]):
    """Measure how far peers are from the first of them, which is not counted. Leaves the sum of their differences."""

    name = "compare"
    leaves = 1
    version: int
    peers: tuple[PeerState, ...]

    def call(self, worker: PeersWorker, gang: Gang) -> Answer[Apart]:
        return worker.compare(self)


@dataclass(frozen=True)
class ConsensusRequest(Request[dict[str, float]]):
    """Compute, by metric, the squared length of the sum of all differences that comparisons left."""

    name = "consensus"
    sums: tuple[Value[Wire], ...]

    def call(self, worker: PeersWorker, gang: Gang) -> Answer[dict[str, float]]:
        return Answer(worker.consensus(self))


@dataclass(frozen=True)
class FinishPeersRequest(Request[dict[str, np.ndarray]]):
    """Fetch the final models: flat vectors `w` and `buffers`, a row a peer."""

    name = "finish"
    version: int
    peers: tuple[PeerState, ...]

    def call(self, worker: PeersWorker, gang: Gang) -> Answer[dict[str, np.ndarray]]:
        return Answer(worker.finish(self))
