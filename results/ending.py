"""How runs stand and end: an enumeration with what ended a run and what mostly helps, and the reasons in words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from results.keys import Value, flatten
from results.texts import written

if TYPE_CHECKING:
    from results.reader import Run

_GO_ON = "go on with `raysim resume`, or declare it over with `raysim end`"
_READ = "what the error says; then go on with `raysim resume`"


class Status(StrEnum):
    """How a run stands. run.json says all but those from `KILLED` on."""

    RUNNING = "running", "cyan"
    FORKING = "forking", "cyan"
    DRY = "dry", "green"
    FINISHED = "finished", "green"
    STOPPED = "stopped", "yellow", "user", _GO_ON
    INTERRUPTED = "interrupted", "yellow", "user", _GO_ON
    DIVERGED = "diverged", "yellow", "divergence"
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
    _cure: str

    def __new__(cls, text: object, colour: str = "", ended_by: str | None = None, cure: str = "") -> Status:
        status = str.__new__(cls, text)
        status._value_ = str(text)
        status.colour, status.ended_by, status._cure = colour, ended_by, cure
        return status

    @classmethod
    def _missing_(cls, value: object) -> Status:
        return cls.UNKNOWN

    @property
    def goes_on(self) -> bool:
        """Whether the run is under way, as far as it is known."""
        return self in (Status.RUNNING, Status.FORKING, Status.MAYBE_KILLED)

    def cure(self, keys: Mapping[str, Value]) -> str:
        """Returns what mostly helps, without what the scenario does already; "" where nothing is wrong.

        keys: the scenario's values by dotted path.
        """
        if self is not Status.DIVERGED:
            return self._cure
        found = [f"a smaller local.lr than {written(keys['local.lr'])}" if "local.lr" in keys else "a smaller local.lr"]
        if not keys.get("local.lr.warmup"):
            found.append("a warm-up of it")
        if "clip_norm" not in str(keys.get("local.gradients")):
            found.append("clip_norm among local.gradients")
        for key in ("algorithm.server_lr", "algorithm.server.lr"):
            rate = keys.get(key)
            if isinstance(rate, int | float) and rate > 1:
                found.append(f"a smaller {key} than {written(rate)}")
        return f"{', '.join(found[:-1])} or {found[-1]}" if len(found) > 1 else found[0]


class Ending(NamedTuple):
    """How a run stands, and all that is known of why it ended; None for what there is not."""

    status: Status
    ended_by: str | None  # the key of `run` that ended it, and its value, such as "run.until.bytes=1e+09"
    diverged: str | None  # what was not finite first, and when
    ended_early: str | None  # why it ended before a key of `run` ended it
    error: str | None  # the first line of the error with which it failed
    history: str | None  # which run it is a fork of, and from which checkpoints it was resumed
    note: str | None  # a remark on a run that is under way or was killed
    declared_over: str | None  # when it was declared over
    cure: str  # what mostly helps; empty where nothing is wrong
    how: str  # the status or, of a run that finished before its rounds were over, reached, or stopped early

    @property
    def why(self) -> str:
        """What ended it, and when."""
        return "; ".join(filter(None, self[1:8]))


def ending(run: Run) -> Ending:
    """Returns how a run stands, and why it ended."""
    info, status = run.info, run.standing
    by, declared = ended_by(info), info.get("declared_over")
    early = {"at_least": "reached", "at_most": "reached", "patience": "stopped early"}
    return Ending(
        status=status,
        ended_by=by,
        diverged=run.diverged,
        ended_early=None if by else info.get("ended_early"),
        error=next(filter(str.strip, (info.get("error") or "").splitlines()), None),
        history=run.history,
        note=run.note,
        declared_over=f"declared over {declared}" if declared else None,
        cure=(Status.DIVERGED if run.diverged else status).cure(run.keys),
        how=early.get(info.get("ended_by") or "", status) if status is Status.FINISHED else status,
    )


def ended_by(info: Mapping[str, Any]) -> str | None:
    """Returns what ended a run that came to its end, such as "run.until.bytes=1e+09"."""
    key = str(info.get("ended_by"))
    keys = flatten({"run": (info.get("scenario") or {}).get("run") or {}})
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
