"""The requests that the engine makes of workers in a run with a server: one class for each kind of job.

Nothing here loads torch. A `Value` in a request refers to something that an earlier job left with the workers. The
worker that carries out the request finds it in the value's `content`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from actors import Answer, Gang, Request, Value
from raysim.terms import Arrival
from raysim.workers.replies import Described, MetricSums, StepReply, TrainedClient, UpdateCost

if TYPE_CHECKING:
    from raysim.workers.client import ClientWorker
    from raysim.workers.peers import PeersWorker
    from raysim.workers.server import ServerWorker
    from raysim.workers.wire import Wire
    from raysim.workers.workshop import Workshop

CLIENT, SERVER = "client", "aggregator"  # names of the two groups of workers


# --- set-up -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadRequest(Request[None]):
    """Loads the data and divides them among clients. It leaves the federation."""

    name = "load"
    leaves = 1

    def call(self, worker: Workshop, gang: Gang) -> Answer[None]:
        return worker.load()


@dataclass(frozen=True)
class DescribeRequest(Request[Described]):
    """Describes the data and the model to the scheduler."""

    name = "describe"

    def call(self, worker: ServerWorker | PeersWorker, gang: Gang) -> Answer[Described]:
        return Answer(worker.describe())


@dataclass(frozen=True)
class FirstRequest(Request[None]):
    """Makes the first model.

    It leaves the first message, the first state of any client, and each entry of the server's first state.
    """

    name = "first"
    entries: tuple[str, ...]  # names of the entries of the server's state, in the order in which they are left

    @property
    def leaves(self) -> int:
        return 2 + len(self.entries)

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[None]:
        return worker.first(self)


@dataclass(frozen=True)
class CostRequest(Request[UpdateCost]):
    """Measures what an update costs."""

    name = "cost"

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[UpdateCost]:
        return Answer(worker.cost())


# --- training and steps -----------------------------------------------------------------------------------------------


class ChunkMember(NamedTuple):
    """A client in a chunk, with all that its training needs."""

    client: int
    number: int  # dispatches of this client before this one
    version: int  # version of the model that it received
    message: Value[Wire]  # the message that it received
    state: Value[Wire] | None  # its own state; None if clients keep none
    weight: float  # weight of its update in the sum; not used if updates are stacked
    share: float  # its part of the step's samples, which is the weight of its buffers


@dataclass(frozen=True)
class TrainRequest(Request[list[TrainedClient]]):
    """Trains a chunk of clients of one server step, one after another.

    It leaves the sum (or the stack) of their updates, then the new state of each member, if clients keep state.
    """

    name = "train"
    members: tuple[ChunkMember, ...]
    summed: bool  # whether their updates are summed; otherwise they are stacked

    @property
    def leaves(self) -> int:
        return 1 + sum(member.state is not None for member in self.members)

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[list[TrainedClient]]:
        return worker.train(self)


@dataclass(frozen=True)
class StepRequest(Request[StepReply]):
    """Does a server step. All aggregators do it together.

    It leaves the next message to clients, then each entry of the server's next state, in the order of `state`.
    """

    name = "step"
    together = True
    version: int  # version of the model that the step makes
    arrivals: tuple[Arrival, ...]
    summed: bool  # whether the algorithm gets the sum of updates; otherwise it gets a stack of them
    factors: tuple[tuple[float, float], ...] | None
    """The weights of each chunk's update and of its buffers, if each chunk is one client that was trained at its
    dispatch. None: the chunks were weighed when they were trained."""
    state: dict[str, Value[np.ndarray]]
    chunks: tuple[Value[Wire], ...]  # what the training jobs left

    @property
    def leaves(self) -> int:
        return 1 + len(self.state)

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[StepReply]:
        return worker.step(self, gang)


# --- evaluation -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvaluateRequest(Request[MetricSums]):
    """Evaluates the server's model on rows `first` to `last` of a split."""

    name = "evaluate"
    split: str
    first: int
    last: int  # exclusive
    message: Value[Wire]

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[MetricSums]:
        return Answer(worker.evaluate(self))


class OwnModels(NamedTuple):
    """Clients whose own models a request is about, with all that making those models needs."""

    clients: tuple[int, ...]
    version: int  # version of the server's model at that time
    unseen: bool  # whether these clients never took part, and must first adapt to that model
    message: Value[Wire]
    states: tuple[Value[Wire], ...]  # the clients' states, in order; () if clients keep none


@dataclass(frozen=True)
class EvaluateClientsRequest(Request[list[MetricSums]]):
    """Evaluates each client's own model on its own test samples."""

    name = "evaluate_clients"
    own: OwnModels

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[list[MetricSums]]:
        return Answer(worker.evaluate_clients(self))


@dataclass(frozen=True)
class SaveClientsRequest(Request[dict[str, np.ndarray]]):
    """Fetches clients' own models as flat vectors `w` and `buffers`, with a row for each client."""

    name = "save_clients"
    own: OwnModels

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[dict[str, np.ndarray]]:
        return Answer(worker.save_clients(self))


@dataclass(frozen=True)
class FinishRequest(Request[dict[str, np.ndarray]]):
    """Fetches the final model as flat vectors `w` and `buffers`."""

    name = "finish"
    message: Value[Wire]

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[dict[str, np.ndarray]]:
        return Answer(worker.finish(self))
