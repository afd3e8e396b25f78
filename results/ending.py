"""Why a run ended, in words, and what mostly cures it where it should not have."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from results.keys import Value
from results.reader import Run
from results.texts import written

_CURES = dict.fromkeys(
    ("interrupted", "stopped", "killed"), "go on with `raysim resume`, or declare it over with `raysim end`"
) | {"failed": "what the error says; then go on with `raysim resume`"}  # by how a run stands

_EARLY = {"at_least": "reached", "at_most": "reached", "patience": "stopped early"}


class Ending(NamedTuple):
    """Why a run ended."""

    how: str
    """finished, reached, stopped early, diverged, interrupted, stopped, killed, failed, running, ..."""
    why: str
    """What ended it, and when."""
    cure: str
    """What mostly helps; empty where nothing is wrong."""


def ending(run: Run) -> Ending:
    """Returns why a run ended, or how it stands."""
    key, standing = str(run.info.get("ended_by") or ""), run.standing
    how = _EARLY.get(key, standing) if standing == "finished" else standing
    wrong = "diverged" if run.diverged else standing.rstrip("?")
    cure = of_divergence(run.keys) if wrong == "diverged" else _CURES.get(wrong, "")
    told = (
        ended_by(run.info),
        run.diverged,
        ended_early(run.info),
        error_line(run.info),
        run.history,
        run.note,
        declared_over(run.info),
    )
    return Ending(how, "; ".join(filter(None, told)), cure)


def error_line(info: Mapping[str, Any]) -> str | None:
    """Returns the first line of the error with which a run failed."""
    return next(filter(str.strip, (info.get("error") or "").splitlines()), None)


def declared_over(info: Mapping[str, Any]) -> str | None:
    """Says when a run was declared over, if it was."""
    return f"declared over {info['declared_over']}" if info.get("declared_over") else None


def ended_by(info: Mapping[str, Any]) -> str | None:
    """Returns what ended a run that came to its end, such as "run.until.bytes=1e+09"."""
    key = info.get("ended_by")
    if key == "rounds":
        return f"run.rounds={at(info, 'scenario', 'run', 'rounds')}"
    until = at(info, "scenario", "run", "until")
    if not isinstance(limit := at(until, str(key)), int | float):
        return None
    about = f", {at(until, 'metric')}" if key in ("at_least", "at_most", "patience") else ""
    return f"run.until.{key}={limit:g}{about}"


def ended_early(info: Mapping[str, Any]) -> str | None:
    """Returns why a run ended early; None where a key of `run` ended it, as was planned."""
    return None if ended_by(info) else info.get("ended_early")


def at(info: Any, *path: str) -> Any:
    """Returns the value at a path of keys, or None where a run under way has not written it yet."""
    for key in path:
        info = info.get(key) if isinstance(info, dict) else None
    return info


def of_divergence(keys: Mapping[str, Value]) -> str:
    """Returns what mostly helps where something was not finite, in terms of the scenario's own keys, without what the
    scenario does already.

    keys: its values by dotted path.
    """
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
