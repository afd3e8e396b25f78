"""The instruction set, libraries and devices of a process, on which the last bits of its numbers depend."""

from __future__ import annotations

import platform
import sys
from typing import NamedTuple


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
