"""The memory that a client actor needs, read in its process after it has trained clients."""

from __future__ import annotations

import pickle
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from actors import Query
from raysim.workers.device import CONTEXT_BYTES

if TYPE_CHECKING:
    from raysim.workers.workbench import Workbench


class Usage(NamedTuple):
    """The memory of a process that trains clients."""

    actor_bytes: int  # most bytes that it had for itself
    gpu_bytes: int | None  # most bytes that it had of a GPU; None without one
    data_bytes: int  # bytes of the data, which the processes of a node share
    model_bytes: int


@dataclass(frozen=True)
class UsageRequest(Query[Usage]):
    """Asks a worker how much memory it needed."""

    name = "usage"

    def ask(self, worker: Workbench) -> Usage:
        on_gpu = worker.device.type == "cuda"
        return Usage(own_peak(), _gpu_peak() if on_gpu else None, _size(worker.federation), 4 * len(worker.start.w))


def own_peak() -> int:
    """Returns the most bytes that this process had, without those that it shares with others of its node."""
    status = Path("/proc/self/status")
    if not status.exists():
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    kilobytes = {line[0]: int(line[1]) for line in map(str.split, status.read_text().splitlines()) if "kB" in line}
    return (kilobytes["VmHWM:"] - kilobytes.get("RssShmem:", 0)) * 1024


def _gpu_peak() -> int:
    import torch

    return torch.cuda.max_memory_reserved() + CONTEXT_BYTES


def _size(content: Any) -> int:
    """Returns the bytes of an object, most of which are in arrays."""
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(content, protocol=5, buffer_callback=arrays.append)
    return len(rest) + sum(array.raw().nbytes for array in arrays)
