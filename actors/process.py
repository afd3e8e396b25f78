"""The process of a worker: its node, host, GPUs and number, and from when to when it lived."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Process(NamedTuple):
    """A process and where it runs, for users who look for a slow machine."""

    node: str  # address of its node in the cluster; without Ray, the name of the host
    host: str  # name of its machine
    gpu: str | None  # numbers of the GPUs on its node that were given to it, such as "0" or "2,3"; None without any
    pid: int

    @classmethod
    def this(cls, node: str | None = None, gpus: Sequence[str] = ()) -> Process:
        """Describes this process. node: the address of its node, if it has one. gpus: those that were given to it."""
        host = socket.gethostname()
        return cls(node or host, host, ",".join(gpus) or None, os.getpid())


@dataclass
class Life:
    """A worker's process, from the end of its first set-up on. Elastic workers come and go, and dead ones are replaced.

    A replacement has the name of the worker before it, and a life of its own.
    """

    worker: str
    process: Process
    since: float  # seconds since the epoch
    until: float | None = None  # when it was found dead, or was given up; None while it lives


def state_of_process() -> tuple[Any, ...]:
    """Returns what code may change in its process that the results of later code may depend on, for comparisons.

    What whoever uses the process sets anew is left out, such as generators of random numbers and settings of torch.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("KMP_")}  # of scikit-learn
    return os.getcwd(), variables, np.geterr(), [entry for entry in warnings.filters if entry[0] == "error"]
