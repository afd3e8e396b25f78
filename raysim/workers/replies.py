"""The results that workers send back: small and without tensors, so that the scheduler need not load torch."""

from typing import NamedTuple, TypeAlias

import numpy as np

from raysim.data.named import Shape

MetricSums: TypeAlias = dict[str, float]
"""The sum of each metric over samples, such as `loss` and `accuracy`, and under `samples` the number of samples."""

OwnMetrics: TypeAlias = "dict[str, float | None]"
"""The metrics of `run.metrics`; None where one is not defined."""

Numbers: TypeAlias = "dict[str, float | None]"
"""What was measured, and what tasks logged, by the name of a table's column or of one of the algorithm's own."""


class Evaluated(NamedTuple):
    """The result of evaluating a model on a split."""

    sums: MetricSums
    own: OwnMetrics

    @property
    def samples(self) -> int:
        """The number of predictions."""
        return int(self.sums["samples"])

    @property
    def values(self) -> OwnMetrics:
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
    meaning: tuple[str, ...]  # what inputs and labels were taken for
    forward_flops: float | None  # of one sample's forward pass; None if they cannot be counted
    state: tuple[str, ...] = ()  # names of the entries of the server's state; () without a server
    stateful: bool = False  # whether clients keep state, with a server


class Passes(NamedTuple):
    """How many forward passes of one sample a client's or peer's work takes, as a function of the samples that it
    holds."""

    fixed: float
    per_sample: float

    def of(self, samples: int) -> float:
        """Returns the number for a client or peer with so many samples."""
        return self.fixed + self.per_sample * samples


class UpdateCost(NamedTuple):
    """What a client's update costs."""

    flops_per_sample: float  # of a forward and a backward pass
    predicting: Passes  # besides gradients
    down_bytes: int
    up_bytes: int


class PeerCost(NamedTuple):
    """What a peer's training and mixing cost."""

    forward_flops: float  # of one sample's forward pass
    passes: Passes  # besides the gradients of `local`: for predictions and for mixing
    passes_per_neighbour: Passes  # how many more there are for each neighbour
    message_bytes: int


class TrainedClient(NamedTuple):
    """The result of a client's training, besides its update."""

    numbers: Numbers  # for the table `updates`
    passes: float  # samples with gradients, with repeats, plus a third of those that were only predicted
    diverged: str | None  # what was not finite, such as "loss"; None if all was


class StepReply(NamedTuple):
    """What the tables show of a server step."""

    numbers: Numbers  # for the table `steps`
    coefficients: dict[str, list[float]]  # columns of the table of that name, with own ones; {} without a search
    diverged: str | None  # the part of the next model that is not finite, "w" or "buffers"; None if all is finite
    compared: list[Numbers]  # for each update, columns of the table `updates`; [] if they are not compared


class TrainedPeer(NamedTuple):
    """The result of a peer's training, besides its draft and message."""

    numbers: Numbers  # for the table `updates`
    message_bytes: int
    diverged: str | None  # what was not finite, such as "loss"; None if all was
    passes: float  # samples that passed through the network, where a backward pass counts as two


class MixedPeer(NamedTuple):
    """The result of a peer's turn of mixing and training, besides its records."""

    mixing_s: float  # wall seconds
    trained: TrainedPeer | None  # None: it did not train, because it will not mix again
    diverged: str | None  # the entry of the peer's state that is not finite; None if all are
    numbers: Numbers  # what mixing logged, for the row of the training before it
    passes: float  # of mixing, as those of training


class Apart(NamedTuple):
    """How far some peers are from another one. squares: by metric, the sum of their squared distances."""

    peers: int  # how many were compared
    squares: dict[str, float]
