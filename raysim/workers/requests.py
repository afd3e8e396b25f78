"""What the engine asks of workers in a run with a server: one frozen value for each kind of job.

Nothing here loads torch. A `Value` in a request stands for something that an earlier job left; the worker finds it in
the value's `content`.
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

CLIENT, SERVER = "client", "aggregator"  # groups of workers


# --- set-up -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadRequest(Request[None]):
    """Load and divide the data. Leaves the federation."""

    name = "load"
    leaves = 1

    def call(self, worker: Workshop, gang: Gang) -> Answer[None]:
        return worker.load()


@dataclass(frozen=True)
class DescribeRequest(Request[Described]):
    """Say what the scheduler must know of data and model."""

    name = "describe"

    def call(self, worker: ServerWorker | PeersWorker, gang: Gang) -> Answer[Described]:
        return Answer(worker.describe())


@dataclass(frozen=True)
class FirstRequest(Request[None]):
    """Make the first model. Leaves the first message, a client's first state, and each entry of the server's."""

    name = "first"
    entries: tuple[str, ...]  # of the server's state, in the order in which their values are left

    @property
    def leaves(self) -> int:
        return 2 + len(self.entries)

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[None]:
        return worker.first(self)


@dataclass(frozen=True)
class CostRequest(Request[UpdateCost]):
    """Measure what an update costs."""

    name = "cost"

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[UpdateCost]:
        return Answer(worker.cost())


# --- training and steps -----------------------------------------------------------------------------------------------


class ChunkMember(NamedTuple):
    """A client's part in a chunk."""

    client: int
    number: int  # of this client's dispatches before
    version: int  # of the model that it received
    message: Value[Wire]  # that it received
    state: Value[Wire] | None  # its own; None where clients keep none
    weight: float  # in the sum of updates; not used where they are stacked
    share: float  # of the step's samples: the weight of its buffers


@dataclass(frozen=True)
class TrainRequest(Request[list[TrainedClient]]):
    """Train a chunk of clients of one server step, one after another.

    Leaves the sum (or stack) of their updates, then the state of each member, if clients keep one.
    """

    name = "train"
    members: tuple[ChunkMember, ...]
    summed: bool

    @property
    def leaves(self) -> int:
        return 1 + sum(member.state is not None for member in self.members)

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[list[TrainedClient]]:
        return worker.train(self)


@dataclass(frozen=True)
class StepRequest(Request[StepReply]):
    """Do a server step. Leaves the message after it, and each entry of the server's state, in the order of `state`."""

    name = "step"
    together = True
    version: int  # of the model that the step makes
    arrivals: tuple[Arrival, ...]
    summed: bool  # whether chunks are sums of updates, or stacks of them
    factors: tuple[tuple[float, float], ...] | None
    """Where chunks are of one client each, the weights of its update and of its buffers; None: they are in the sums."""
    state: dict[str, Value[np.ndarray]]
    chunks: tuple[Value[Wire], ...]  # that trainings left

    @property
    def leaves(self) -> int:
        return 1 + len(self.state)

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[StepReply]:
        return worker.step(self, gang)


# --- evaluation -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvaluateRequest(Request[MetricSums]):
    """Evaluate the server's model on some rows of a split."""

    name = "evaluate"
    split: str
    first: int
    last: int  # exclusive
    message: Value[Wire]

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[MetricSums]:
        return Answer(worker.evaluate(self))


class OwnModels(NamedTuple):
    """Clients whose own models are asked for."""

    clients: tuple[int, ...]
    version: int  # of the server's model then
    unseen: bool  # whether they never took part, and adapt to that model first
    message: Value[Wire]
    states: tuple[Value[Wire], ...]  # of the clients, in their order; none where clients keep none


@dataclass(frozen=True)
class EvaluateClientsRequest(Request[list[MetricSums]]):
    """Evaluate each client's own model on its own test samples."""

    name = "evaluate_clients"
    own: OwnModels

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[list[MetricSums]]:
        return Answer(worker.evaluate_clients(self))


@dataclass(frozen=True)
class SaveClientsRequest(Request[dict[str, np.ndarray]]):
    """Fetch clients' own models: flat vectors `w` and `buffers`, a row each."""

    name = "save_clients"
    own: OwnModels

    def call(self, worker: ClientWorker, gang: Gang) -> Answer[dict[str, np.ndarray]]:
        return Answer(worker.save_clients(self))


@dataclass(frozen=True)
class FinishRequest(Request[dict[str, np.ndarray]]):
    """Fetch the final model: flat vectors `w` and `buffers`."""

    name = "finish"
    message: Value[Wire]

    def call(self, worker: ServerWorker, gang: Gang) -> Answer[dict[str, np.ndarray]]:
        return Answer(worker.finish(self))
