"""The device that a worker computes on: the CPU, or its share of a GPU."""

import os
from dataclasses import dataclass
from typing import Literal

from raysim.parts.errors import Problem, ScenarioError
from raysim.parts.lazy import torch

STAND_IN = "RAYSIM_STAND_IN_GPU"
"""Variable for tests, with a number of GiB: what runs on a GPU then runs on the CPU, which stands in for a GPU with as
much memory."""
_TEST = "PYTEST_CURRENT_TEST"  # set by pytest while a test runs
CONTEXT_BYTES = 600 << 20  # what CUDA takes for each process, beside the memory that torch allocates


@dataclass(frozen=True)
class ComputeDevice:
    """A worker's device."""

    kind: Literal["cpu", "cuda"]  # where it computes, as torch calls it
    limit_bytes: int | None = None  # of the GPU's memory that torch may allocate; None: all that is free


def open_device(share: float) -> ComputeDevice:
    """Returns a share of the GPU that Ray gave to this process, or the CPU for a share of 0.

    An actor that asked for none still sees all GPUs of its node, so that cannot tell. Raises RuntimeError if there is
    no GPU, or if the share is too small to compute with.
    """
    if share == 0:
        return ComputeDevice("cpu")
    if stood_in := stand_in_bytes():
        return ComputeDevice("cpu", _limit(share, stood_in))
    if not torch.cuda.is_available():
        raise RuntimeError("the scenario's resources ask for a GPU, but torch finds none here; see raysim doctor")
    total = torch.cuda.get_device_properties(0).total_memory
    limit = _limit(share, total)
    if limit is not None:  # Ray counts shares of GPUs, but does not enforce them
        torch.cuda.set_per_process_memory_fraction(limit / total)
    return ComputeDevice("cuda", limit)


def prefer_deterministic() -> None:
    """Lets torch avoid algorithms that round anew each time, where it can.

    All actors of a run that uses a GPU ask for it, those on CPUs too, since a run in one process shares the setting.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # it costs kernels


def gpus_here() -> list[str]:
    """Returns the numbers of the GPUs of this machine that this process may use."""
    if stand_in_bytes():
        return ["0"]
    count, visible = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[:count] if visible else [str(number) for number in range(count)]


def _limit(share: float, total_bytes: int) -> int | None:
    """Returns how much torch may allocate, so that the whole process keeps to its share; None for a whole GPU."""
    if share == 1:
        return None
    limit = int(share * total_bytes) - CONTEXT_BYTES
    if limit <= 0:
        least = CONTEXT_BYTES / total_bytes
        text = f"must be more than {least:.2g} on this GPU, because each process takes so much for CUDA alone"
        raise RuntimeError(f"resources.gpus_per_client and gpus_per_aggregator: {text}, got {share:g}; raise it")
    return limit


def stand_in_bytes() -> int | None:
    """Returns the memory of the GPU that is stood in for; None if none is. Raises ScenarioError outside of tests."""
    if STAND_IN not in os.environ:
        return None
    if _TEST not in os.environ:
        text = f"is for tests only, which set {_TEST} too; unset it, or nothing would run on a GPU"
        raise ScenarioError("environment", [Problem(STAND_IN, text)])
    return int(float(os.environ[STAND_IN]) * 2**30)
