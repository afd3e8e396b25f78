"""The requests that the engine makes of workers in a run with a server: one class for each kind of job.

Nothing here loads torch. A `Value` in a request refers to something that an earlier job left with the workers. The
worker that carries out the request finds it in the value's `content`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from actors import Answer, Gang, Query, Request, Value
from raysim.terms import Arrival, Missed, ModelKey, Moment, Weight, Wire
from raysim.workers.replies import ClientWire, Evaluated, MetricSums, Numbers, StateValues, StepReply, TrainedMember

Update: TypeAlias = "tuple[Wire, Wire]"
"""What clients send, but for buffers, and their buffers, which the engine averages in all algorithms."""


class ClientHandlers(Protocol):
    """What a worker that trains and evaluates clients must do for the requests below."""

    def train(self, request: TrainRequest) -> Answer[list[TrainedMember], TrainedChunk]: ...
    def statistics(self, request: StatisticsRequest) -> Answer[None, Value[Wire]]: ...
    def evaluate(self, request: EvaluateRequest) -> Answer[MetricSums, tuple[Value[Wire], ...]]: ...
    def metrics(self, request: MetricsRequest) -> Numbers: ...
    def evaluate_clients(self, request: EvaluateClientsRequest) -> list[dict[str, Evaluated]]: ...
    def save_clients(self, request: SaveClientsRequest) -> dict[str, np.ndarray]: ...


class ServerHandlers(Protocol):
    """What a worker that does the server's steps must do for the requests below."""

    def first(self, request: FirstRequest) -> Answer[None, SteppedState]: ...
    def step(self, request: StepRequest, gang: Gang) -> Answer[StepReply, SteppedState]: ...
    def finish(self, request: FinishRequest) -> dict[str, np.ndarray]: ...


class SteppedState(NamedTuple):
    """What a server step leaves, or making the first model."""

    message: Value[Wire]  # what clients are sent after it
    received: Value[Wire] | None  # the same as they decode it; None if that is the message
    state: StateValues
    clients: Mapping[ModelKey, Value[ClientWire]] = {}  # at first: the state of a client with the model of each key


@dataclass(frozen=True)
class FirstRequest(Request[None, SteppedState]):
    """Makes the first model."""

    name = "first"
    entries: tuple[str, ...]  # names of the entries of the server's state
    changed: bool  # whether all clients decode something other than the message
    models: tuple[ModelKey, ...]  # of clients, the server's first

    def leaves(self) -> SteppedState:
        received = Value[Wire]() if self.changed else None
        clients = {key: Value[ClientWire]() for key in self.models}
        return SteppedState(Value(), received, {name: Value() for name in self.entries}, clients)

    def call(self, worker: ServerHandlers, gang: Gang) -> Answer[None, SteppedState]:
        return worker.first(self)


# --- training and steps -----------------------------------------------------------------------------------------------


class ChunkMember(NamedTuple):
    """A client in a chunk, with all that its training needs."""

    client: int
    number: int  # dispatches of this client before this one
    version: int  # version of the model that it received
    moment: Moment  # of its dispatch
    message: Value[Wire]  # the message that it received
    state: Value[ClientWire] | None  # its own state; None if clients keep none
    weight: Weight  # of its update in the sum, or in several; not used if updates are stacked
    share: float  # its part of the step's samples, which is the weight of its buffers
    missed: Missed
    level: ModelKey  # of its model


def shares(arrivals: Sequence[Arrival]) -> list[float]:
    """Returns the part of a step's samples that each of its members has, of those with its architecture."""
    samples = Counter[str | None]()
    for arrival in arrivals:
        samples[arrival.architecture] += arrival.samples
    return [arrival.samples / samples[arrival.architecture] for arrival in arrivals]


class TrainedChunk(NamedTuple):
    """What the training of a chunk leaves."""

    update: Value[Update]  # the sum (or the stack) of the members' updates
    states: tuple[Value[ClientWire], ...]  # the new state of each member; () if clients keep none


@dataclass(frozen=True, kw_only=True)
class TrainRequest(Request[list[TrainedMember], TrainedChunk]):
    """Trains a chunk of clients of one server step, one after another."""

    name = "train"
    members: tuple[ChunkMember, ...]
    summed: bool  # whether their updates are summed; otherwise they are stacked

    def leaves(self) -> TrainedChunk:
        return TrainedChunk(update=Value(), states=tuple(Value() for member in self.members if member.state))

    def call(self, worker: ClientHandlers, gang: Gang) -> Answer[list[TrainedMember], TrainedChunk]:
        return worker.train(self)


class StepNoise(NamedTuple):
    """The noise of a step."""

    scale: float  # its standard deviation in the sum, by the bound of an update
    clip: float  # largest bound of an update in the step, if bounds do not adapt; infinite without a bound
    weight: float  # largest one of an update
    updates: int  # in the step
    count_std: float = 0.0  # standard deviation of the noise on how many updates were not longer, if bounds adapt


@dataclass(frozen=True, kw_only=True)
class StepRequest(Request[StepReply, SteppedState]):
    """Does a server step. All aggregators do it together."""

    name = "step"
    together = True
    version: int  # version of the model that the step makes
    moment: Moment  # before the step
    arrivals: tuple[Arrival, ...]
    weights: tuple[Weight, ...] | None  # of the updates in their sum; None: the algorithm gets every update, stacked
    message: Value[Wire]  # what clients were sent before it
    state: StateValues  # before it
    chunks: tuple[Value[Update], ...]  # what the training jobs left
    changed: bool  # whether all clients decode something other than the message
    noise: StepNoise | None = None  # of `release`

    def leaves(self) -> SteppedState:
        received = Value[Wire]() if self.changed else None
        return SteppedState(Value(), received, {name: Value(former=old) for name, old in self.state.items()})

    def call(self, worker: ServerHandlers, gang: Gang) -> Answer[StepReply, SteppedState]:
        return worker.step(self, gang)


# --- evaluation -------------------------------------------------------------------------------------------------------


class Served(NamedTuple):
    """A model that is evaluated or saved: the server's, its slice of a level, or that of another architecture."""

    message: Value[Wire]
    version: int
    level: ModelKey = 1.0
    statistics: tuple[Value[Wire], ...] = ()  # what `StatisticsRequest` left of it; () if the message has them


@dataclass(frozen=True, kw_only=True)
class StatisticsRequest(Request[None, Value[Wire]]):
    """Collects statistics of BatchNorm over the training samples `first` to `last`, in a random order. Leaves them."""

    name = "statistics"
    model: Served
    first: int
    last: int  # exclusive

    def leaves(self) -> Value[Wire]:
        return Value()

    def call(self, worker: ClientHandlers, gang: Gang) -> Answer[None, Value[Wire]]:
        return worker.statistics(self)


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest(Request[MetricSums, tuple[Value[Wire], ...]]):
    """Evaluates a model on rows `first` to `last` of a split. Leaves its outputs and the labels, if they are kept."""

    name = "evaluate"
    split: str
    first: int
    last: int  # exclusive
    model: Served
    keeps: bool  # whether the model's outputs are kept, of which own metrics are computed

    def leaves(self) -> tuple[Value[Wire], ...]:
        return (Value(),) if self.keeps else ()

    def call(self, worker: ClientHandlers, gang: Gang) -> Answer[MetricSums, tuple[Value[Wire], ...]]:
        return worker.evaluate(self)


@dataclass(frozen=True)
class MetricsRequest(Query[Numbers]):
    """Computes own metrics of the server's model on a split. outputs: what the evaluations left, in order of rows."""

    name = "metrics"
    outputs: tuple[Value[Wire], ...]

    def ask(self, worker: ClientHandlers) -> Numbers:
        return worker.metrics(self)


class OwnModels(NamedTuple):
    """Clients whose own models a request is about, with all that making those models needs."""

    clients: tuple[int, ...]
    levels: tuple[ModelKey, ...]  # of each of them
    version: int  # version of the server's model at that time
    moment: Moment  # when that version was made
    unseen: bool  # whether these clients never took part, and must first adapt to that model
    models: tuple[Served, ...]  # that they received, of each level among them
    states: tuple[Value[ClientWire], ...]  # the clients' states, in order; () if clients keep none


@dataclass(frozen=True)
class EvaluateClientsRequest(Query[list[dict[str, Evaluated]]]):
    """Evaluates each client's own model on its own samples. The result has each client's results by split."""

    name = "evaluate_clients"
    own: OwnModels

    def ask(self, worker: ClientHandlers) -> list[dict[str, Evaluated]]:
        return worker.evaluate_clients(self)


@dataclass(frozen=True)
class SaveClientsRequest(Query[dict[str, np.ndarray]]):
    """Fetches clients' own models as flat vectors `w` and `buffers`, with a row for each client."""

    name = "save_clients"
    own: OwnModels

    def ask(self, worker: ClientHandlers) -> dict[str, np.ndarray]:
        return worker.save_clients(self)


@dataclass(frozen=True)
class FinishRequest(Query[dict[str, np.ndarray]]):
    """Fetches the final model as flat vectors `w` and `buffers`, those of other architectures with `of` and the name of
    a group and, of slices that have their own statistics, `buffers` with a space and the level."""

    name = "finish"
    models: tuple[Served, ...]

    def ask(self, worker: ServerHandlers) -> dict[str, np.ndarray]:
        return worker.finish(self)
