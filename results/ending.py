"""Why a run ended, in words, and what mostly cures it where it should not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from results.cure import of_divergence
from results.reader import Run
from results.summary import ended_by, ended_early

CURES = {
    "interrupted": "go on with `raysim resume`, or declare it over with `raysim end`",
    "stopped": "go on with `raysim resume`, or declare it over with `raysim end`",
    "killed": "go on with `raysim resume`, or declare it over with `raysim end`",
    "failed": "what the error says; then go on with `raysim resume`",
}
"""What mostly helps, by how a run stands, except where it diverged."""

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
    cure = of_divergence(run.keys) if wrong == "diverged" else CURES.get(wrong, "")
    return Ending(how, "; ".join(_reasons(run)), cure)


def _reasons(run: Run) -> Iterator[str]:
    info = run.info
    told = (
        ended_by(info),
        run.diverged,
        ended_early(info),
        next(filter(str.strip, (info.get("error") or "").splitlines()), None),
        run.history,
        run.note,
        f"declared over {info['declared_over']}" if info.get("declared_over") else None,
    )
    yield from (str(one) for one in told if one)
