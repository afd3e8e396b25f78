"""Tells an observer of a run that is over what it would have been told while the run went on."""

from __future__ import annotations

from typing import Any

from raysim.observers.observer import Observer, RunBegin, RunEnd
from raysim.runs.observing import why_it_ended
from results import NotARun, Run


def retell(run: Run, observer: Observer) -> None:
    """Calls the observer's `begin`, its `rows` with all rows of each table that it wants, and its `end`.

    There is no `progress`: it is not among what a run leaves. Raises NotARun if the run has not ended, and what the
    observer raises.
    """
    if run.status in ("running", "forking", "dry"):
        raise NotARun(f"{run.folder}: must be a run that has ended, got one that is {run.standing}; wait for its end")
    observer.begin(begin_of(run))
    for table in observer.tables:
        observer.rows(table, run.table(table).to_pylist())
    observer.end(RunEnd(run.status, why_it_ended(run.info), None, run.info))


def begin_of(run: Run) -> RunBegin:
    """Returns what `begin` was told of a run, as its run.json says."""
    sweep: dict[str, Any] = run.info.get("sweep") or {}
    label = sweep.get("label") or run.info["name"]
    return RunBegin(run.id, run.folder, run.info["scenario"], 0, 0, sweep.get("name"), label)
