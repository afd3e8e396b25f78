"""What run.json says: it is read, checked and written here; how runs stand and end, and what mostly helps; whether the
process that writes a run still lives; and which metrics are better when they are larger."""

from __future__ import annotations

import json
import math
import os
import socket
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from results.disk import replacing
from results.keys import flatten
from results.location import location, reaching, require_file, why
from results.texts import quoted

CURE = "copy it again from where it is whole, or run the scenario again"


class NotARun(ValueError):
    """Raised for a folder that is not a run's, or that this version cannot read."""


class DamagedTable(NotARun):
    """Raised for a table, or a file of it, that cannot be read or lacks rows."""

    def __init__(self, place: Path, what: str) -> None:
        super().__init__(f"{place}: must {what}; {CURE}")


_TYPES: dict[type, tuple[str, ...]] = {
    str: ("run", "status", "name", "scenario_hash", "started_at", "finished_at", "ended_early", "ended_by", "error"),
    dict: (
        *("scenario", "seconds", "totals", "rows", "holder", "digest", "versions", "git", "sweep", "depends_on"),
        *("best", "left", "diverged", "forked_from"),
    ),
    list: ("notes", "machines", "workers", "resumed"),
    int: ("seed", "parameters", "classes"),
}
"""The types of values that are read, by key. Any may be missing or null; there may be others."""
_WORDS = {str: "text", dict: "a block of keys", list: "a list", int: "an integer"}


def read_info(folder: Path) -> dict[str, Any]:
    """Returns the content of run.json, as it is. Raises NotARun where there is no such file, or it holds no object."""
    path = folder / "run.json"
    try:
        with reaching():
            content = require_file(path).read_bytes()
        info = json.loads(content)
    except OSError as error:
        raise NotARun(
            f"{folder}: a run's folder must hold run.json, which cannot be read ({why(error)}); "
            "give the folder of one run, such as runs/<id>"
        ) from error
    except (ValueError, RecursionError) as error:
        raise NotARun(f"{path}: must be JSON, got {error}; {CURE}") from error
    if not isinstance(info, dict):
        raise NotARun(f"{path}: must hold a JSON object, got {quoted(info)}; {CURE}")
    return info


def wrong_info(info: dict[str, Any]) -> list[str]:
    """Returns what is wrong with the types of values in run.json, a line for each."""
    return [
        f"{key}: must be {_WORDS[kind]}, got {quoted(info[key])}"
        for kind, keys in _TYPES.items()
        for key in keys
        if info.get(key) is not None and not isinstance(info[key], kind)
    ]


def write_json(folder: str | os.PathLike[str], info: dict[str, Any]) -> None:
    """Writes `folder/run.json`. A reader sees the whole old text or the whole new one, never a mixture."""
    path = location(folder) / "run.json"
    text = json.dumps(info, indent=2, allow_nan=False) + "\n"
    with replacing(path) as hidden:
        hidden.write_text(text, encoding="utf-8")


# --- how runs stand ---------------------------------------------------------------------------------------------------

_GO_ON = "continue with `raysim resume`"
_SMALLER = "a smaller local.lr or algorithm.server_lr, a warm-up, or clip_norm among local.gradients"
_READ = "what the error says; then continue with `raysim resume`"


class Status(StrEnum):
    """How a run stands. run.json says all but those from `KILLED` on."""

    RUNNING = "running", "cyan"
    FORKING = "forking", "cyan"
    DRY = "dry", "green"
    FINISHED = "finished", "green"
    STOPPED = "stopped", "yellow", "user", _GO_ON
    INTERRUPTED = "interrupted", "yellow", "user", _GO_ON
    DIVERGED = "diverged", "yellow", "divergence", _SMALLER
    FAILED = "failed", "red", "failure", _READ
    KILLED = "killed", "red", None, _GO_ON  # it says running or forking, but its process is gone
    MAYBE_KILLED = "killed?", "yellow", None, _GO_ON  # the same of a process elsewhere, silent for ten minutes
    DAMAGED = "damaged", "red"  # its files cannot be read
    COPY = "copy", "red"  # another folder of the same look holds the run
    UNKNOWN = "unknown", "red"  # run.json does not say, or says what this version does not know

    colour: str
    """In a terminal."""
    ended_by: str | None
    """What run.json says that ended a run that did not come to its end."""
    cure: str
    """What mostly helps; empty where nothing is wrong."""

    def __new__(cls, text: object, colour: str = "", ended_by: str | None = None, cure: str = "") -> Status:
        status = str.__new__(cls, text)
        status._value_ = str(text)
        status.colour, status.ended_by, status.cure = colour, ended_by, cure
        return status

    @classmethod
    def _missing_(cls, value: object) -> Status:
        return cls.UNKNOWN

    @property
    def goes_on(self) -> bool:
        """Whether the run is under way, as far as it is known."""
        return self in (Status.RUNNING, Status.FORKING, Status.MAYBE_KILLED)


def ended_by(info: Mapping[str, Any]) -> str | None:
    """Returns what ended a run that came to its end, such as "run.until.bytes=1e+09"."""
    key = str(info.get("ended_by"))
    keys = flatten({"run": (info.get("scenario") or {}).get("run") or {}})
    if key == "epsilon":
        return f"privacy.epsilon={(info['scenario'].get('privacy') or {}).get('epsilon'):g}"
    if key == "rounds":
        return f"run.rounds={keys.get('run.rounds')}"
    if not isinstance(limit := keys.get(f"run.until.{key}"), int | float):
        return None
    about = f", {keys.get('run.until.metric')}" if key in ("at_least", "at_most", "patience") else ""
    return f"run.until.{key}={limit:g}{about}"


def why_early(info: Mapping[str, Any]) -> str | None:
    """Returns why a run failed or ended early, or what was not finite, as run.json says; None if it finished."""
    return info.get("error") or info.get("ended_early") or (info.get("diverged") or {}).get("what")


def at(info: Any, *path: str) -> Any:
    """Returns the value at a path of keys, or None where a run under way has not written it yet."""
    for key in path:
        info = info.get(key) if isinstance(info, dict) else None
    return info


_PROC = Path("/proc")


def this_process() -> dict[str, Any]:
    """Returns what tells this process from every other, on this machine and elsewhere.

    started: clock ticks since the boot, or None. A later process may have the same pid, but not the same start. boot
    is an id. pids: the namespace in which the pid counts, for containers of one machine each have their own.
    """
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": _started(pid), **_place()}


def state(process: Mapping[str, Any] | None) -> Literal["alive", "gone", "unknown"]:
    """Returns whether a process that `this_process` described still lives.

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


# --- metrics of runs --------------------------------------------------------------------------------------------------

LARGER_IS_BETTER = {"accuracy": True, "loss": False}
"""Whether a larger value of a metric is the better one. A metric that is missing here has no known direction."""


_SHARES = (
    *("accuracy", "balanced_accuracy", "macro_f1", "macro_precision", "macro_recall", "average_precision", "auroc"),
    *("top2", "top3", "top5", "top10", "ece", "exact_match", "f1", "iou", "dice"),
)
_RANGES = dict.fromkeys(_SHARES, (0.0, 1.0)) | dict.fromkeys(("loss", "rmse", "mae"), (0.0, math.inf))
_RANGES |= {"perplexity": (1.0, math.inf), "mcc": (-1.0, 1.0), "r2": (-math.inf, 1.0)}


def range_of(metric: str) -> tuple[float, float]:
    """Returns the least and the largest value that a metric can have, as far as that is known by its name."""
    return _RANGES.get(metric, (-math.inf, math.inf))


def directions(*infos: Mapping[str, Any]) -> dict[str, bool]:
    """Returns whether larger is better for the metrics above and for own ones of runs, given their run.json.

    A run's own metric is left out if its direction is not known, or if the runs disagree on it.
    """
    found: dict[str, set[bool | None]] = {}
    for info in infos:
        for metric, larger in (info.get("larger_is_better") or {}).items():
            found.setdefault(metric, set()).add(larger)
    agreed = {metric: said.pop() for metric, said in found.items() if len(said) == 1}
    return LARGER_IS_BETTER | {metric: larger for metric, larger in agreed.items() if larger is not None}
