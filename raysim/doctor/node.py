"""What a node has for a run, found out by a process on it."""

import hashlib
import importlib
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from actors import this_machine
from raysim.doctor.room import memory
from raysim.runs.record import installed
from raysim.version import __version__
from raysim.workers.workshop import stand_in, stand_in_bytes
from results.location import UnknownLocation, location, reaching

_SMI = ["nvidia-smi", "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
_SMI_S = 20.0  # seconds that nvidia-smi may take


class Gpu(NamedTuple):
    """A GPU of a node."""

    name: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class Node:
    """What a node has for a run."""

    software: Mapping[str, str | None]  # versions and kinds by name; None of what is not there
    torch_sees: int  # GPUs
    gpus: tuple[Gpu, ...]
    cpus: int  # that the process may use
    memory_bytes: int
    free_memory_bytes: int
    free_disk_bytes: int  # free bytes where temporary files go, and where Ray spills to
    missing: tuple[str, ...]  # of the paths that were asked about


@dataclass(frozen=True)
class Examination:
    """Examines the node on which it is called."""

    paths: tuple[str, ...]  # that are looked for

    def __call__(self, resources: Mapping[str, float]) -> Node:
        """resources: what Ray shares out there; {} without Ray."""
        import torch

        (total, free), size = memory(), stand_in_bytes() if stand_in() else 0
        gpus = _gpus() if not stand_in() else (Gpu("stand-in", size, size),) * int(resources.get("GPU", 0))
        machine = this_machine()
        return Node(
            software={
                "Python": platform.python_version(),
                "raysim": f"{__version__} {_code()}",
                "Ray": installed("ray"),
                "torch": machine.torch,
                "NumPy": machine.numpy,
                "CUDA": torch.version.cuda,
                "libc": machine.libc,
                "CPU": machine.capability,
                "CPU vendor": machine.vendor,
                "GPU": ", ".join(sorted({gpu.name for gpu in gpus})) or None,
            },
            torch_sees=torch.cuda.device_count(),
            gpus=gpus,
            cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            memory_bytes=total,
            free_memory_bytes=free,
            free_disk_bytes=shutil.disk_usage("/tmp").free,
            missing=tuple(path for path in self.paths if not _is_there(path)),
        )


def _is_there(path: str) -> bool:
    """Returns whether a file or a folder can be reached from here; it may have a URI."""
    try:
        found = location(path).expanduser()
        with reaching():
            return found.exists()
    except (OSError, UnknownLocation):  # no credentials on this node, or no library
        return False


def _code() -> str:
    """Returns a hash of raysim's code, because two copies may differ and have one version."""
    hashed = hashlib.sha256()
    for package in ("raysim", "actors", "results"):
        root = Path(str(importlib.import_module(package).__file__)).parent
        for file in sorted(root.rglob("*.py")):
            hashed.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return hashed.hexdigest()[:8]


def _gpus() -> tuple[Gpu, ...]:
    """Asks nvidia-smi, because torch would take memory on each GPU to find out how much is free."""
    try:
        shown = subprocess.run(_SMI, capture_output=True, text=True, timeout=_SMI_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):  # there is none, or it finds no driver
        return ()
    rows = [[cell.strip() for cell in line.split(",")] for line in shown.splitlines() if line.strip()]
    return tuple(Gpu(name, _bytes(total), _bytes(free)) for name, total, free in rows)


def _bytes(mebibytes: str) -> int:
    return int(mebibytes) << 20 if mebibytes.isdigit() else 0  # what is not known is shown in brackets
