"""What workers send back and leave, small and without tensors, so that the scheduler need not load torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from actors import Value
from raysim.data import Federation
from raysim.data.meaning import Shape
from raysim.terms import ClientState, ModelKey, ModelSizes, Traffic, Vectors, Wire

MetricSums: TypeAlias = dict[str, float]
"""The sum of each metric over samples, such as `loss` and `accuracy`, and under `samples` the number of samples."""

Numbers: TypeAlias = "dict[str, float | None]"
"""Numbers by name: metrics of `run.metrics`, or custom columns of the algorithm. None: not defined."""

StateValues: TypeAlias = "dict[str, Value[np.ndarray | Wire]]"
"""Each entry of the server's state. The message that goes with it is a separate value."""

ClientWire: TypeAlias = ClientState[np.ndarray]
"""The state of a client or peer as it travels."""

# --- set-up and evaluation --------------------------------------------------------------------------------------------


class Evaluated(NamedTuple):
    """The result of evaluating a model on a split."""

    sums: MetricSums
    own: Numbers

    @property
    def samples(self) -> int:
        """The number of predictions."""
        return int(self.sums["samples"])

    @property
    def values(self) -> Numbers:
        """The value of each metric."""
        means = {metric: total / self.sums["samples"] for metric, total in self.sums.items() if metric != "samples"}
        return {**means, **self.own}


class Described(NamedTuple):
    """What the scheduler must know of the data, the model and, in a run with a server, the states."""

    samples: np.ndarray  # number of samples that each client trains on, (clients,) int64
    held_out: np.ndarray  # number of samples that each client tests its own model on, (clients,) int64
    evaluation_rows: dict[str, int]  # by split, the number of samples on which models are evaluated
    partition: dict[str, np.ndarray]  # columns of the table `partition`
    parameters: int  # number of parameters
    entries: tuple[tuple[str, tuple[int, ...], int], ...]  # of each parameter: name, shape, offset in the flat vector
    shape: Shape  # of one input
    classes: int
    unseen: np.ndarray  # numbers of the clients that take no part, but may adapt to the last model
    notes: tuple[str, ...]  # what of the scenario is seldom meant, or done otherwise than asked
    meaning: dict[str, Any]  # what inputs and labels are
    files: Mapping[str, bytes]  # what the run keeps beside its model, by path
    forward_flops: float | None  # of one sample's forward pass; None if they cannot be counted
    flops_at: dict[ModelKey, float]  # those of clients of each level; {} where all train the server's model
    state: tuple[str, ...] = ()  # names of the entries of the server's state; () without a server
    pools: bool = False  # whether statistics of BatchNorm are collected for evaluations, with a server
    stateful: bool = False  # whether clients keep state, with a server


class Passes(NamedTuple):
    """How many forward passes of one sample a client's or peer's work takes, as a function of the samples that it
    holds."""

    fixed: float
    per_sample: float

    @classmethod
    def through(cls, federation: Federation, of_smallest: float, measure: Callable[[int], float]) -> Passes:
        """Fits them through those of the clients with the fewest and the most samples.

        of_smallest: of the client with the fewest; if they are 0, they are 0 for all. measure: returns those of
        another client.
        """
        held, smallest, largest = federation.samples, federation.smallest, federation.largest
        fewest, most = int(held[smallest]), int(held[largest])
        if not of_smallest or fewest == most:
            return cls(of_smallest, 0.0)
        per_sample = (measure(largest) - of_smallest) / (most - fewest)
        return cls(of_smallest - per_sample * fewest, per_sample)

    def of(self, samples: int) -> float:
        """Returns the number for a client or peer with so many samples."""
        return self.fixed + self.per_sample * samples


class WorkCost(NamedTuple):
    """What a client's update costs or, without a server, a peer's training and mixing."""

    forward_flops: float  # of one sample's forward pass
    passes: Passes  # besides the gradients of `update` or `local`: for predictions and for mixing
    passes_per_neighbour: Passes  # how many more there are for each neighbour; none with a server
    sizes: ModelSizes  # of the model
    tensors: Traffic  # of the update and the message
    up: Vectors  # as in `Trip`; so below
    down: Vectors
    first: tuple[int, Vectors] | None = None  # bytes and `down` of the first message, if entries of it are still empty
    memory_bytes: int = 0  # that training takes, where clients have levels
    levels: Mapping[ModelKey, WorkCost] = {}  # of clients of each level; never changed

    def of(self, level: ModelKey) -> WorkCost:
        """Returns what an update of a client of a level costs."""
        return self.levels.get(level, self)


# --- training and steps -----------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """What was measured of a training or a step, and logged: a part of a row of the table `updates` or `steps`."""

    columns: dict[str, Any]  # by the names of the table's columns; those that are left out are null
    own: Numbers  # custom columns of the algorithm


class TrainedMember(NamedTuple):
    """The result of the training of a client or peer, besides its update, or its draft and message."""

    numbers: Measured  # `up_bytes` of a peer is that of a message to one neighbour
    passes: float
    """Of a client, samples with gradients, with repeats, plus a third of those that were only predicted. Of a peer,
    samples that passed through the network, where a backward pass counts as two."""
    diverged: str | None  # what was not finite, such as "loss"; None if all was


class Searched(NamedTuple):
    """What a server's search found: columns of the table `coefficients`, each with a number for each anchor."""

    columns: dict[str, list[float]]
    own: dict[str, list[float]]  # those of the algorithm's own


class StepReply(NamedTuple):
    """What the tables show of a server step."""

    numbers: Measured
    searched: Searched | None  # None without a search
    diverged: str | None  # the part of the next model that is not finite, "w" or "buffers"; None if all is finite
    compared: list[Numbers]  # for each update, own columns of the table `updates`; [] if they are not compared


class MixedPeer(NamedTuple):
    """The result of a peer's turn of mixing and training, besides its records."""

    mixing_s: float  # wall seconds
    trained: TrainedMember | None  # None: it did not train, because it will not mix again
    diverged: str | None  # the entry of the peer's state that is not finite; None if all are
    columns: Numbers  # what mixing logged for columns that tasks fill, in the row of the training before it
    own: Numbers  # what mixing logged for custom columns of the algorithm
    passes: float  # of mixing, as those of training


class Apart(NamedTuple):
    """How far some peers are from another one. squares: by metric, the sum of their squared distances."""

    peers: int  # how many were compared
    squares: dict[str, float]
