"""The process of a worker: where it runs, from when to when it lived, and what its bits depend on."""

from __future__ import annotations

import os
import platform
import socket
import sys
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


class Machine(NamedTuple):
    """What a process computes with."""

    system: str  # such as Linux x86_64
    vendor: str | None  # of the CPU: libraries of matrix products choose their code by it
    capability: str | None  # the instruction set that torch uses, such as AVX512; None without torch
    libc: str
    numpy: str | None  # version
    torch: str | None  # version
    gpu: str | None  # name of the GPU; None if the process uses none

    def differences(self, other: Machine) -> list[str]:
        """Returns the differences that may change bits, such as "capability AVX512 and AVX2"."""
        pairs = zip(self._fields, self, other, strict=True)
        return [f"{name} {mine} and {theirs}" for name, mine, theirs in pairs if mine != theirs]


def this_machine() -> Machine:
    """Describes this process. Libraries that are not loaded yet are left out."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    gpu = torch.cuda.get_device_name() if torch and torch.cuda.is_initialized() else None
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        vendor=_vendor(),
        capability=torch.backends.cpu.get_cpu_capability() if torch else None,
        libc=" ".join(platform.libc_ver()),
        numpy=numpy.__version__ if numpy else None,
        torch=str(torch.__version__) if torch else None,
        gpu=gpu,
    )


def _vendor() -> str | None:
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("vendor_id")), None)
    except OSError:
        return None


def end_copy(process: int) -> None:
    """Ends this process if it is not the one of this number but a copy, which hosted code made by `os.fork` and did not
    end."""
    if os.getpid() != process:
        os._exit(1)
