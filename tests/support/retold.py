"""Tells an observer of a run that is over, from its tables."""

from typing import Any

from raysim.observers.observer import Observer, RunBegin, RunEnd
from results import Run
from results.info import why_early


def retell(run: Run, observer: Observer) -> None:
    """Calls `begin`, `rows` with all rows of each table that it wants, and `end`."""
    observer.begin(begin_of(run))
    for table in observer.tables:
        observer.rows(table, run.table(table).to_pylist())
    observer.end(RunEnd(run.status, why_early(run.info), None, run.info))


def begin_of(run: Run) -> RunBegin:
    """What `begin` was told of a run, as its run.json says."""
    sweep: dict[str, Any] = run.info.get("sweep") or {}
    label = sweep.get("label") or run.info["name"]
    return RunBegin(run.id, run.folder, run.info["scenario"], 0, 0, sweep.get("name"), label)
