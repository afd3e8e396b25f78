"""What workers answer: small, typed and without tensors, so that the scheduler need not load torch."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

MetricSums: TypeAlias = dict[str, float]
"""Sums of metrics over samples, such as `loss` and `accuracy`, and `samples`, their number."""


class Described(NamedTuple):
    """What the scheduler must know of data and model."""

    samples: np.ndarray  # that each client trains on, (clients,) int64
    held_out: np.ndarray  # that each client tests its own model on, (clients,) int64
    evaluation_rows: dict[str, int]  # by split
    partition: dict[str, np.ndarray]
    parameters: int
    entries: tuple[tuple[str, tuple[int, ...], int], ...]  # of the flat vector: name, shape, offset
    shape: tuple[int, ...]  # of one input
    classes: int
    unseen: np.ndarray  # clients that take no part, but may adapt to the last model, by number
    state: tuple[str, ...] = ()  # names of the entries of the server's state; none without a server
    stateful: bool = False  # whether clients of a server keep state


class UpdateCost(NamedTuple):
    """What a client's update costs."""

    flops_per_sample: float  # forward and backward
    down_bytes: int
    up_bytes: int


class PeerCost(NamedTuple):
    """What a peer's training and mixing cost."""

    forward_flops: float  # of a sample's forward pass
    passes: float  # of samples beside local training, by predictions and in mixing; a forward pass is one
    passes_per_neighbour: float  # those that a neighbour adds
    message_bytes: int


class TrainingColumns(NamedTuple):
    """Columns of the table `updates` that a client's or a peer's training fills; None where there is nothing to say."""

    local_steps: int
    seconds: float
    loss_before: float | None
    loss_after: float | None
    residual: float | None
    tolerance: float | None
    penalty: float | None
    solver_iterations: float | None  # mean over the solves of deep equilibrium layers
    solver_residual: float | None
    unconverged: int | None


class TrainedClient(NamedTuple):
    """What became of a client in a chunk."""

    columns: TrainingColumns
    samples_seen: int  # that gradients were taken of
    up_bytes: int
    down_bytes: int


class StepReply(NamedTuple):
    """What the tables say of a server step."""

    server_flops: float
    cache_bytes: int
    similarity: float | None
    coefficients: dict[str, list[float]]  # columns of a search, an element an anchor; {} without one


class TrainedPeer(NamedTuple):
    """What became of a peer's training."""

    columns: TrainingColumns
    message_bytes: int


class MixedPeer(NamedTuple):
    """What became of a peer in a job of mixing and training."""

    mixing_s: float  # wall seconds
    trained: TrainedPeer | None  # None: it will not mix again


class Apart(NamedTuple):
    """How far some peers are from another one: squared distances by metric, summed over them."""

    peers: int
    squares: dict[str, float]
