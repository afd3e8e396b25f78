"""The process of a worker: where it runs, what its bits depend on, and when a signal may end a run in it.

A signal may end a run in the middle of a job, because jobs change nothing that the run keeps. Between jobs, the run
counts and writes their results, and must not be interrupted, or rows and totals would differ. A handler of signals
calls `ask`.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

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


def state_of_process() -> tuple[Any, ...]:
    """Returns what code may change in its process that the results of later code may depend on, for comparisons.

    What whoever uses the process sets anew is left out, such as generators of random numbers.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("KMP_")}  # of scikit-learn
    settings = {name: now for name, (now, usual) in (numpy_settings() | torch_settings()).items() if now != usual}
    return os.getcwd(), variables, settings, [entry for entry in warnings.filters if entry[0] == "error"]


Settings = dict[str, tuple[Any, Any]]  # by name, a setting as it is, and as a new process has it


def numpy_settings() -> Settings:
    """Returns the settings of numpy that results may depend on."""
    return {"numpy.geterr()": (np.geterr(), {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"})}


def torch_settings() -> Settings:
    """Returns the settings of torch that can change bits, in this thread; none if it is not loaded."""
    if (torch := sys.modules.get("torch")) is None:
        return {}
    backends = torch.backends
    cudnn, sdp, einsum = backends.cudnn, backends.cuda, import_module("torch.backends.opt_einsum")
    return {
        "torch.get_default_dtype()": (torch.get_default_dtype(), torch.float32),
        "torch.get_default_device()": (torch.get_default_device().type, "cpu"),
        "torch.is_grad_enabled()": (torch.is_grad_enabled(), True),
        "torch.is_inference_mode_enabled()": (torch.is_inference_mode_enabled(), False),
        "torch.is_autocast_enabled('cpu')": (torch.is_autocast_enabled("cpu"), False),
        "torch.is_autocast_enabled('cuda')": (torch.is_autocast_enabled("cuda"), False),
        "torch.is_anomaly_enabled()": (torch.is_anomaly_enabled(), False),
        "torch.set_flush_denormal": (sys.float_info.min / 2 == 0, False),  # torch can set it, but does not tell it
        "torch.get_deterministic_debug_mode()": (torch.get_deterministic_debug_mode(), 0),
        "torch.get_float32_matmul_precision()": (_read(torch.get_float32_matmul_precision), "highest"),
        "torch.backends.cudnn.enabled": (cudnn.enabled, True),
        "torch.backends.cudnn.benchmark": (cudnn.benchmark, False),
        "torch.backends.cudnn.deterministic": (cudnn.deterministic, False),
        "torch.backends.cudnn.allow_tf32": (_read(lambda: cudnn.allow_tf32), True),
        "torch.backends.mkldnn.enabled": (torch._C._get_mkldnn_enabled(), True),
        "torch.backends.cuda.flash_sdp_enabled()": (sdp.flash_sdp_enabled(), True),
        "torch.backends.cuda.mem_efficient_sdp_enabled()": (sdp.mem_efficient_sdp_enabled(), True),
        "torch.backends.cuda.math_sdp_enabled()": (sdp.math_sdp_enabled(), True),
        "torch.backends.mha.get_fastpath_enabled()": (backends.mha.get_fastpath_enabled(), True),
        "torch.backends.opt_einsum.enabled": (einsum.enabled, einsum.is_available()),
    }


def _read(setting: Callable[[], Any]) -> Any:
    try:
        return setting()
    except RuntimeError:  # it was set by its old and by its new names
        return "set by fp32_precision"


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


Answer = TypeVar("Answer")


class OnNode(NamedTuple, Generic[Answer]):
    """A node, and what it answered."""

    address: str
    is_driver: bool  # whether it is the node of the process that asks
    resources: Mapping[str, float]  # that Ray shares out: CPU, GPU and others
    answer: Answer | None  # None if the call failed
    error: str = ""  # the reason if the call failed


_interruption = {"deferred": False, "asked": False}  # one for the process, because signals reach its main thread


def ask() -> None:
    """Raises KeyboardInterrupt: at once, or at the next job or the end of the block if a block defers it."""
    if not _interruption["deferred"]:
        raise KeyboardInterrupt
    _interruption["asked"] = True


@contextmanager
def deferring() -> Iterator[None]:
    """Defers interruptions within the block, except in jobs."""
    before, _interruption["deferred"] = _interruption["deferred"], True
    try:
        yield
    except BaseException:
        _interruption.update(deferred=before, asked=False)  # the run ends with this exception anyway
        raise
    _interruption["deferred"] = before
    _raise_if_asked()


@contextmanager
def allowing() -> Iterator[None]:
    """Lets interruptions through within the block, which is a job."""
    before, _interruption["deferred"] = _interruption["deferred"], False
    try:
        _raise_if_asked()
        yield
    finally:
        _interruption["deferred"] = before


def _raise_if_asked() -> None:
    if _interruption["asked"]:
        _interruption["asked"] = False
        raise KeyboardInterrupt
