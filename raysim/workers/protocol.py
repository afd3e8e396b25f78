"""What passes between scheduler and workers; no tensors, so that the scheduler need not load torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from raysim.scenario import Scenario

if TYPE_CHECKING:
    from raysim.workers.client import Worker

CLIENT, SERVER = "client", "aggregator"  # groups of workers


@dataclass(frozen=True)
class MakeWorker:
    """What each actor calls once."""

    scenario: Scenario
    gpus: float  # how much of one it may use; 0: none
    serves: bool = False  # the server's steps

    def __call__(self) -> Worker:
        if self.serves:
            from raysim.workers.server import ServerWorker

            return ServerWorker(self.scenario, self.gpus)
        from raysim.workers.client import Worker

        return Worker(self.scenario, self.gpus)


class Member(NamedTuple):
    """A client's part in a chunk."""

    client: int
    number: int  # of this client's dispatches before
    version: int  # of the model that it received
    message: int  # where that is among the chunk's messages
    weight: float  # in the sum of updates; not used where they are stacked
    share: float  # of the step's samples: the weight of its buffers


class WorkPerClient(NamedTuple):
    """What an update costs."""

    flops_per_sample: float  # forward and backward
    down_bytes: int
    up_bytes: int


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
    stateful: bool  # whether clients keep state
    state: tuple[str, ...]  # entries of the server's; none without a server
    unseen: np.ndarray  # clients that take no part, but may adapt to the last model, by number
