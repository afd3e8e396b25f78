"""The section on real time: what each worker and each node spent it on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from results import style
from results.groups import Groups, RunGroup
from results.picture import Picture, picture
from results.reader import Run
from results.report.section import of_each_group

_WORKERS = 32
_TASKS = 200  # in the figure of the start
_ROW = 0.24  # inches
_KINDS = ("train", "step", "evaluate")  # tasks with a fixed pattern; other tasks take the patterns after these


def _pictures(_: Groups, group: RunGroup) -> Iterator[Picture]:
    run = group.first
    tasks = run.table("tasks", ["task", "worker", "node", "started_s", "seconds"]).to_pandas()
    if tasks.empty:
        return
    tasks["task"] = tasks["task"].astype(str).str.partition("_")[0]  # such as evaluate_clients
    workers = sorted(tasks["worker"].unique(), key=lambda worker: (len(worker), worker))[:_WORKERS]
    found = set(tasks["task"])
    kinds = {kind: place for place, kind in enumerate((*_KINDS, *sorted(found.difference(_KINDS)))) if kind in found}
    yield _shares(group, run, tasks, workers, kinds)
    if tasks["node"].nunique() > 1:
        yield _nodes(group, run, tasks, kinds)
    yield _start(group, tasks, workers, kinds)


def _shares(group: RunGroup, run: Run, tasks: pd.DataFrame, workers: list[str], kinds: dict[str, int]) -> Picture:
    lasted = (run.info.get("seconds") or {}).get("loop") or (tasks["started_s"] + tasks["seconds"]).max()
    sums = _sums(tasks, "worker").loc[workers]
    busy = sums.sum(axis="columns")
    sums["waiting"] = (lasted - busy).clip(lower=0)

    def draw(axes: Axes) -> None:
        left = _bars(axes, group.look.hue, sums, kinds)
        shape: dict[str, Any] = {"facecolor": "none", "edgecolor": style.MUTED[0], "linewidth": 0.6}
        axes.barh(workers, sums["waiting"], 0.62, left, label="waiting", hatch="////", **shape)

    which = "" if tasks["worker"].nunique() == len(workers) else f" Only the first {len(workers)} workers are shown."
    caption = (
        f"{run.id}: {lasted:.3g} s, of which workers were busy {100 * busy.mean() / lasted:.0f} % on average.{which}"
    )
    return picture(f"real-time-{group.place}", "Time per worker", caption, draw, 0.8 + _ROW * len(workers))


def _nodes(group: RunGroup, run: Run, tasks: pd.DataFrame, kinds: dict[str, int]) -> Picture:
    """Draws what a worker on each node spent its time on, so that nodes with more workers are not longer."""
    workers = tasks.groupby("node", observed=True)["worker"].nunique()
    sums = _sums(tasks, "node").div(workers, axis="index").sort_index(key=lambda nodes: nodes.astype(str))
    hosts = {entry["node"]: entry["host"] for entry in run.info.get("workers") or []}
    names = {node: f"{node} ({hosts[node]})" if hosts.get(node, node) != node else node for node in sums.index}
    kind = "train" if "train" in kinds else next(iter(kinds))
    middle = tasks[tasks["task"] == kind].groupby("node", observed=True)["seconds"].median().sort_values()
    caption = (
        f"Busy time for each worker on a node. The median task of kind {kind} took {middle.iloc[0]:.3g} s on "
        f"{names[middle.index[0]]}, and {middle.iloc[-1]:.3g} s on {names[middle.index[-1]]}."
    )

    def draw(axes: Axes) -> None:
        _bars(axes, group.look.hue, sums.rename(index=names), kinds)

    return picture(f"real-time-nodes-{group.place}", "Time by node", caption, draw, 0.8 + _ROW * len(sums))


def _sums(tasks: pd.DataFrame, by: str) -> pd.DataFrame:
    """Returns the seconds of tasks, a row for each worker or node, and a column for each kind of task."""
    return tasks.groupby([by, "task"], observed=True)["seconds"].sum().unstack().fillna(0.0)


def _bars(axes: Axes, hue: int, sums: pd.DataFrame, kinds: dict[str, int]) -> pd.Series[float]:
    """Draws a bar for each row, with a piece for each kind of task. Returns where the bars end."""
    left = sums.iloc[:, 0] * 0
    for kind, number in kinds.items():
        axes.barh(list(sums.index), sums[kind], 0.62, left, label=kind, **style.pattern(hue, number))
        left = left + sums[kind]
    axes.set(xlabel="real time in seconds", ylim=(len(sums) - 0.4, -0.6))
    axes.grid(axis="y", visible=False)
    return left


def _start(group: RunGroup, tasks: pd.DataFrame, workers: list[str], kinds: dict[str, int]) -> Picture:
    first = tasks[tasks["worker"].isin(workers)].nsmallest(_TASKS, "started_s")

    def draw(axes: Axes) -> None:
        for kind, number in kinds.items():
            of_kind = first[first["task"] == kind]
            look = style.pattern(group.look.hue, number)
            rows = of_kind["worker"].map(workers.index).to_numpy(int)
            axes.barh(rows, of_kind["seconds"], 0.7, of_kind["started_s"], label=kind, **look)
        axes.set(xlabel="real time in seconds", ylim=(len(workers) - 0.4, -0.6))
        axes.set_yticks(range(len(workers)), workers)
        axes.grid(axis="y", visible=False)

    caption = f"The first {len(first)} tasks, each from its start to its end."
    return picture(f"real-time-start-{group.place}", "The first tasks", caption, draw, 0.8 + _ROW * len(workers))


real_time = of_each_group(
    "real_time",
    "Real time",
    "What each worker, and each of several nodes, spent its real time on. {shown}Starting the workers, loading the "
    "data and saving the final model are not counted.",
    _pictures,
)
