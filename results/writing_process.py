"""The process that writes a run: run.json names it, so that whoever reads the folder can see whether it still lives.

Linux only. Elsewhere nothing is known of other processes, and `state` says so.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

_PROC = Path("/proc")


def this_process() -> dict[str, Any]:
    """Returns what tells this process from every other, on this machine and elsewhere.

    started: clock ticks since the boot, or None. A later process may have the same pid, but not the same start. boot
    is an id. pids: the namespace in which the pid counts, for containers of one machine each have their own.
    """
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": _started(pid), **_place()}


def state(process: Mapping[str, Any] | None) -> Literal["alive", "gone", "unknown"]:
    """Tells whether a process that `this_process` described still lives.

    unknown: its number says nothing here, because it ran on another machine, in another container, or before this
    machine was started again.
    """
    pid, here = process.get("pid") if process else None, _place()
    if process is None or not isinstance(pid, int) or here["boot"] is None:
        return "unknown"
    if {key: process.get(key) for key in here} != here:
        return "unknown"
    return "alive" if _started(pid) == process.get("started") is not None else "gone"


def _place() -> dict[str, str | None]:
    try:
        pids = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        pids = None
    return {"boot": _read(_PROC / "sys/kernel/random/boot_id"), "pids": pids}


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _started(pid: int) -> int | None:
    """Returns when a process started, or None if there is none. A process that has ended, but is not yet waited for
    by its parent, is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # from the third on: the second is the name, which may hold anything
    return None if fields[0] in "ZX" else int(fields[19])
