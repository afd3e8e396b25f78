"""Who works in a run, as its table of jobs tells."""

from __future__ import annotations

from typing import NamedTuple

from results.reader import Run

WINDOW_S = 60.0  # real seconds of a run, up to its last job, over which shares are taken


class AtWork(NamedTuple):
    """A worker of a run."""

    worker: str
    node: str
    task: str  # its last job
    seconds: float  # real time that this took
    ago_s: float  # real time from its end to that of the run's last job
    share: float  # of the last minute of the run, how much the worker spent on jobs


def at_work(run: Run) -> list[AtWork]:
    """Returns the workers of a run, in the order of their names; none before the first job is done."""
    frame = run.table("tasks", ["worker", "node", "task", "started_s", "seconds"]).to_pandas()
    if frame.empty:
        return []
    frame["ended_s"] = frame["started_s"] + frame["seconds"]
    end, start = frame["ended_s"].max(), frame["started_s"].min()
    since = max(start, end - WINDOW_S)
    window = max(end - since, 1e-9)
    found = []
    for worker, jobs in frame.groupby("worker", observed=True):
        last = jobs.loc[jobs["ended_s"].idxmax()]
        busy = (jobs["ended_s"] - jobs["started_s"].clip(lower=since)).clip(lower=0.0).sum()
        told = str(worker), str(last["node"]), str(last["task"])
        found.append(AtWork(*told, float(last["seconds"]), float(end - last["ended_s"]), min(busy / window, 1.0)))
    return found
