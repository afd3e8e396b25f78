"""The process that holds a run: run.json names it, so that whoever reads the folder can see whether it still lives.

Linux only. Elsewhere nothing is known of other processes, and `state` says so.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

_PROC = Path("/proc")


def this_process() -> dict[str, Any]:
    """Returns what tells this process from every other: host, pid, when it started, and the boot of its machine.

    started: clock ticks since the boot, or None. A later process may have the same pid, but not the same start.
    """
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": _started(pid), "boot": _boot()}


def state(holder: Mapping[str, Any] | None) -> Literal["alive", "gone", "unknown"]:
    """Tells whether a process that `this_process` described still lives. unknown: it is on another machine."""
    pid, host = (holder.get("pid"), holder.get("host")) if holder else (None, None)
    if not isinstance(pid, int) or host != socket.gethostname() or not _PROC.is_dir():
        return "unknown"
    assert holder is not None
    if holder.get("boot") != _boot():  # the machine was started again since then
        return "gone"
    return "alive" if _started(pid) == holder.get("started") is not None else "gone"


def _started(pid: int) -> int | None:
    """Returns when a process started, or None if there is none. A process that has ended, but is not yet waited for
    by its parent, is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # from the third on: the second is the name, which may hold anything
    return None if fields[0] in "ZX" else int(fields[19])


def _boot() -> str | None:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
