"""The numbers of runs that a comparison takes: reduced metrics, totals, and the cost of reaching targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow.compute as pc

from results.measure import TOTALS, Measure, NotComparable, require_of
from results.readings import COSTS, MOMENT, WHAT, epsilon_of, last, moments, readings
from results.run_set import RunSet

if TYPE_CHECKING:
    import pandas as pd

Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
"""By name of the number and run; runs without it are left out."""

_SOURCES = {  # total: (table, column, aggregate)
    "virtual_time": ("evaluations", "virtual_time", "max"),
    "up_bytes": ("steps", "up_bytes", "sum"),
    "down_bytes": ("steps", "down_bytes", "sum"),
    "local_steps": ("updates", "local_steps", "sum"),
    "staleness": ("updates", "staleness", "mean"),
    "epsilon": ("steps", "epsilon", "max"),
}


class Censored(float):
    """The cost of a target that a run has not reached: it is more than this, which the run has spent."""


def score(runs: RunSet, measure: Measure) -> Numbers:
    """Returns the numbers of all runs by metric. Those of a target are named rounds_to_accuracy_0.8 and so on; of a run
    that has not reached it, they are `Censored`.

    Raises NotComparable where no run evaluated a metric.
    """
    frame = measured(runs, measure)
    numbers: dict[str, Mapping[str, float]] = {}
    reduced = _until_best(runs, frame, measure) if measure.reduce == "at_best_validation" else frame
    for metric in measure.metrics:
        if metric in TOTALS:
            numbers[metric] = _total(runs, metric, measure)
        else:
            of_runs = reduced[reduced["metric"] == metric].groupby("run")["value"]
            numbers[metric] = {str(run): measure.reduced(metric, found.tolist()) for run, found in of_runs}
    for metric, target in measure.targets:
        of_metric, larger = frame[frame["metric"] == metric], measure.larger_is_better(metric)
        for cost in measure.costs:
            numbers[f"{cost}_to_{metric}_{target:g}"] = spent_until(of_metric, cost, target, larger)
    return numbers


def spent_until(frame: pd.DataFrame, cost: str, target: float, larger: bool | None) -> dict[str, float]:
    """Returns what each run had spent when a reading was first as good as a target; `Censored`, where none was."""
    reached = frame[frame["value"] >= target if larger else frame["value"] <= target].drop_duplicates("run")
    ends = last(frame, "run")
    spent: dict[str, float] = {run: Censored(end) for run, end in zip(ends["run"], ends[cost], strict=True)}
    spent |= dict(zip(reached["run"], reached[cost], strict=True))
    return {run: number for run, number in spent.items() if not math.isnan(number)}


def measured(runs: RunSet, measure: Measure) -> pd.DataFrame:
    """Returns the readings that a comparison takes, within its budget. Raises NotComparable where no run evaluated a
    metric."""
    metrics = {*measure.evaluated, *(metric for metric, _ in measure.targets)}
    costs = dict.fromkeys([*(measure.costs if measure.targets else ()), *([measure.at[0]] if measure.at else [])])
    which: Any = (metrics, [measure.subject], [measure.split])
    frame = readings(runs, *which, over=measure.over, costs=[*costs])
    if lacking := metrics - {*frame["metric"]}:
        raise NotComparable(_none(runs, sorted(lacking), measure))
    return _within(frame, measure)


def _within(frame: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    return frame[frame[measure.at[0]] <= measure.at[1]] if measure.at else frame


def _until_best(runs: RunSet, frame: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Returns the readings up to the one that is best on the validation split, the first one of equally good."""
    validation = measured(runs, replace(measure, split="validation", reduce="last")).dropna(subset="value")
    signs = {metric: 1 if measure.larger_is_better(metric) else -1 for metric in measure.evaluated}
    order = (validation["value"] * validation["metric"].map(signs)).groupby([validation["metric"], validation["run"]])
    best = validation.loc[order.idxmax(), ["metric", "run", *MOMENT]]
    both = frame.merge(best, on=["metric", "run"], suffixes=("", "_of_best"))
    now, then = (both[[name + end for name in MOMENT]].itertuples(index=False, name=None) for end in ("", "_of_best"))
    return both[np.array([a <= b for a, b in zip(now, then, strict=True)], bool)]


def _none(runs: RunSet, lacking: list[str], measure: Measure) -> str:
    """Returns the message for metrics that no run evaluated."""
    there = runs.table("evaluations", WHAT, keys=[]).group_by([*WHAT]).aggregate([]).to_pylist()
    evaluated = "; ".join(sorted(" ".join(row.values()) for row in there)) or "none"
    return (
        f"metric: must be evaluated in a run, for subject {measure.subject} on split {measure.split}, or be a total, "
        f"got {', '.join(lacking)}; evaluated are {evaluated}; totals are {', '.join(TOTALS)}"
    )


def common_budget(runs: RunSet, cost: str) -> float:
    """Returns the largest budget that all runs that are over have spent by their last evaluation; of all runs if none
    is over. Runs that do not say what they spent are left out of account.

    Raises NotComparable for an unknown cost, and where no run says.
    """
    require_of("at", cost, COSTS)
    some = runs.only([run for run in runs.runs if run.over] or runs.runs)
    spent = last(moments(some, [cost]), "run")[cost].dropna()
    if spent.empty:
        raise NotComparable(f"at: must be a cost that a run says, got {cost!r}; take another one")
    return float(spent.min())


def _total(runs: RunSet, name: str, measure: Measure) -> dict[str, float]:
    """Returns a total of each run, up to its last evaluation within the budget."""
    if name == "seconds":
        seconds = {run.id: (run.info.get("seconds") or {}).get("total") for run in runs.runs}
        return {run: total for run, total in seconds.items() if total is not None}
    if name == "epsilon" and measure.at is None:
        epsilons = {run.id: epsilon_of(run) for run in runs.runs}
        return {run: epsilon for run, epsilon in epsilons.items() if epsilon is not None and math.isfinite(epsilon)}
    table, column, aggregate = _SOURCES[name]
    used = pc.field("status") == "used" if name == "staleness" else None  # others count all rows
    rows = runs.pandas(table, ["run", "step", column], used, keys=[]).astype({"run": str})
    if measure.at:
        ends = last(_within(moments(runs, [measure.at[0]]), measure), "run").set_index("run")["step"]
        rows = rows[rows["step"] <= rows["run"].map(ends).astype(float)]
    found = rows.groupby("run")[column].agg(aggregate)
    known = rows.groupby("run")[column].count() > 0
    return {str(run): float(total) for run, total in found[known].items()}
