"""The requests that the engine makes of workers in a run without a server: one class for each kind of job.

One `Value` holds the states, drafts or messages of several peers, with a row for each. A `Place` names a row of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from actors import Answer, Gang, Query, Request, Value
from raysim.terms import Moment, Wire
from raysim.workers.replies import Apart, ClientWire, Evaluated, MixedPeer

Row = TypeVar("Row")


class PeerHandlers(Protocol):
    """What a worker must do for the requests below."""

    def mix(self, request: MixRequest) -> Answer[list[MixedPeer], Mixture]: ...
    def evaluate(self, request: EvaluatePeersRequest) -> list[dict[str, Evaluated]]: ...
    def compare(self, request: CompareRequest) -> Answer[Apart, Value[Wire]]: ...
    def consensus(self, request: ConsensusRequest) -> dict[str, float]: ...
    def finish(self, request: FinishPeersRequest) -> dict[str, np.ndarray]: ...


class Own(NamedTuple):
    """What a peer keeps for itself; empty records in place of what is not kept."""

    draft: ClientWire
    state: ClientWire


class Place(NamedTuple, Generic[Row]):
    """Where a peer's record is: a row of a value."""

    value: Value[tuple[Row, ...]]
    row: int

    @property
    def content(self) -> Row:
        """The record itself. Only the worker that got the request may read it."""
        found: Row = self.value.content[self.row]
        return found


class PeerState(NamedTuple):
    """A peer, and where its state is kept."""

    peer: int
    own: Place[Own]
    moment: Moment  # when its models are asked for


class Turn(NamedTuple):
    """A peer's part in a job: it mixes, or gets its first state. Then it trains, if it will mix again, unless another
    peer has asked it for an exchange, while its training continues."""

    peer: int
    mixes: int  # mixes of this peer, with this one; 0: it gets its first state instead of mixing
    trains: bool
    kept: bool  # whether the state after mixing is kept, to be evaluated
    draft: Place[Own] | None = None  # the draft of the training that is over; None without one
    message: Place[Wire] | None = None  # its own message; None before its first state
    inbox: tuple[Place[Wire], ...] = ()  # its neighbours' messages
    weights: tuple[float, ...] = ()  # W_ij of the messages in the inbox
    shares: tuple[float, ...] = ()  # A_ij of the messages in the inbox
    kept_share: float = 1.0  # A_ii of its own message
    mixes_at: Moment = Moment()
    trains_at: Moment = Moment()
    joins: bool = False  # whether it starts as `world.join` says
    copied: PeerState | None = None  # the peer whose model it then copies


class Mixture(NamedTuple):
    """What a job of mixing leaves: two values with a row for each turn."""

    own: Value[tuple[Own, ...]]
    messages: Value[tuple[Wire, ...]]


@dataclass(frozen=True)
class MixRequest(Request[list[MixedPeer], Mixture]):
    """Mixes peers' and their neighbours' messages, and trains for the next mix, one peer after another."""

    name = "mix"
    turns: tuple[Turn, ...]

    def leaves(self) -> Mixture:
        return Mixture(own=Value(), messages=Value())

    def call(self, worker: PeerHandlers, gang: Gang) -> Answer[list[MixedPeer], Mixture]:
        return worker.mix(self)


@dataclass(frozen=True)
class EvaluatePeersRequest(Query[list[dict[str, Evaluated]]]):
    """Evaluates peers, each on all samples of each split."""

    name = "evaluate"
    version: int  # number of rounds that are over
    peers: tuple[PeerState, ...]

    def ask(self, worker: PeerHandlers) -> list[dict[str, Evaluated]]:
        return worker.evaluate(self)


@dataclass(frozen=True)
class CompareRequest(Request[Apart, Value[Wire]]):
    """Measures how far peers are from the first of `peers`, which is only the origin and is not counted.

    It leaves the sum of the differences.
    """

    name = "compare"
    version: int  # number of rounds that are over
    peers: tuple[PeerState, ...]

    def leaves(self) -> Value[Wire]:
        return Value()

    def call(self, worker: PeerHandlers, gang: Gang) -> Answer[Apart, Value[Wire]]:
        return worker.compare(self)


@dataclass(frozen=True)
class ConsensusRequest(Query[dict[str, float]]):
    """Computes, by metric, the squared norm of the sum of all differences. sums: what the comparisons left."""

    name = "consensus"
    sums: tuple[Value[Wire], ...]

    def ask(self, worker: PeerHandlers) -> dict[str, float]:
        return worker.consensus(self)


@dataclass(frozen=True)
class FinishPeersRequest(Query[dict[str, np.ndarray]]):
    """Fetches the final models as flat vectors `w` and `buffers`, with a row for each peer."""

    name = "finish"
    version: int
    peers: tuple[PeerState, ...]

    def ask(self, worker: PeerHandlers) -> dict[str, np.ndarray]:
        return worker.finish(self)
