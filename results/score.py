"""The numbers of runs that a comparison takes: reduced metrics, totals, and the cost of reaching targets."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.measure import QUANTILES, TOTALS, Measure, NotComparable

if TYPE_CHECKING:
    from results.run_set import RunSet

Numbers: TypeAlias = list[float | None]  # a number for each run; None where it has none

_SOURCES = {  # total: (table, column, aggregate)
    "virtual_time": ("evaluations", "virtual_time", "max"),
    "up_bytes": ("steps", "up_bytes", "sum"),
    "down_bytes": ("steps", "down_bytes", "sum"),
    "local_steps": ("updates", "local_steps", "sum"),
}
_OVER = {  # ways to join members' numbers that need more than one aggregate: (column, aggregate) pairs
    # The mean is there to find NaN of members that diverged, which Arrow leaves out of min and max.
    "gap": [("value", "max"), ("value", "min"), ("value", "mean")],
    "max": [("value", "max"), ("value", "mean")],
    "min": [("value", "min"), ("value", "mean")],
    "micro": [("total", "sum"), ("counted", "sum")],
    **{name: [("value", "list")] for name in QUANTILES},
}


class Point(NamedTuple):
    """An evaluation."""

    round: int
    step: int
    virtual_time: float
    value: float


def score(runs: RunSet, measure: Measure) -> dict[str, Numbers]:
    """Returns the numbers of all runs by metric. Those of a target are named rounds_to_accuracy_0.8 and so on.

    Raises NotComparable where no run evaluated a metric.
    """
    series = _series(runs, measure)
    numbers: dict[str, Numbers] = {}
    for metric in measure.metrics:
        if metric in TOTALS:
            numbers[metric] = _total(runs, metric)
        else:
            values = [[point.value for point in series.get((metric, run.id), [])] for run in runs.runs]
            numbers[metric] = [measure.of(metric, of_run) if of_run else None for of_run in values]
    for metric, target in measure.targets:
        larger = measure.larger_is_better(metric)
        hits = [_first(series.get((metric, run.id), []), target, larger) for run in runs.runs]
        numbers |= {f"{cost}_to_{metric}_{target:g}": found for cost, found in _costs(runs, hits).items()}
    return numbers


def _series(runs: RunSet, measure: Measure) -> dict[tuple[str, str], list[Point]]:
    """Returns the evaluations in order, by metric and run."""
    metrics = {*measure.evaluated, *(metric for metric, _ in measure.targets)}
    if not metrics:
        return {}
    wanted = (pc.field("subject") == measure.subject) & (pc.field("split") == measure.split)
    wanted &= pc.field("metric").isin(sorted(metrics))
    if measure.picked:
        wanted &= pc.field("picked") > 0
    key = ["metric", "run", "round", "step", "virtual_time"]
    evaluations = runs.table("evaluations", [*key, "value", "samples"], wanted, keys=[])
    evaluations = evaluations.append_column("total", pc.multiply(evaluations["value"], evaluations["samples"]))
    defined = pc.is_valid(evaluations["value"])
    evaluations = evaluations.append_column("counted", pc.if_else(defined, evaluations["samples"], 0))
    over = _OVER.get(measure.over, [("value", measure.over)])
    found = evaluations.group_by(key).aggregate(over)
    rows = sorted(_rows(found, *key, *("_".join(pair) for pair in over)))
    series = {
        of: [Point(row[2], row[3], row[4], _together(measure.over, *row[5:])) for row in points]
        for of, points in groupby(rows, lambda row: row[:2])
    }
    if lacking := metrics - {metric for metric, _ in series}:
        raise NotComparable(_none(runs, sorted(lacking), measure))
    return series


def _together(over: str, *aggregates: Any) -> float:
    """Joins the aggregates over an evaluation's members into one number.

    It is NaN if a member's number is, or if no member has one.
    """
    if isinstance(aggregates[0], list):
        aggregates = ([value for value in aggregates[0] if value is not None],)
    if aggregates[0] is None or aggregates[0] == []:
        return math.nan
    match over, aggregates:
        case "gap", (largest, smallest, mean):
            return math.nan if math.isnan(mean) else float(largest - smallest)
        case "min" | "max", (extreme, mean):
            return math.nan if math.isnan(mean) else float(extreme)
        case "micro", (total, samples):
            return float(total / samples)
        case _, (list() as values,):
            return float(np.quantile(values, QUANTILES[over]))
    return float(aggregates[0])


def _none(runs: RunSet, lacking: list[str], measure: Measure) -> str:
    """Returns the message for metrics that no run evaluated."""
    key = ["subject", "split", "metric"]
    there = sorted(set(_rows(runs.table("evaluations", key, keys=[]), *key)))
    return (
        f"metric: must be evaluated in a run, for subject {measure.subject} on split {measure.split}, or be a total, "
        f"got {', '.join(lacking)}; evaluated are {'; '.join(map(' '.join, there)) or 'none'}; "
        f"totals are {', '.join(TOTALS)}"
    )


def _total(runs: RunSet, name: str) -> Numbers:
    if name == "seconds":
        return [(run.info.get("seconds") or {}).get("total") for run in runs.runs]
    table, column, aggregate = _SOURCES[name]
    found = runs.table(table, ["run", column], keys=[]).group_by("run").aggregate([(column, aggregate)])
    of_run = dict(_rows(found, "run", f"{column}_{aggregate}"))
    return [of_run.get(run.id) for run in runs.runs]


def _first(points: list[Point], target: float, larger: bool | None) -> Point | None:
    """Returns the first evaluation that is at least as good as the target."""
    return next((point for point in points if (point.value >= target if larger else point.value <= target)), None)


def _costs(runs: RunSet, hits: list[Point | None]) -> dict[str, Numbers]:
    """Returns the costs of each run up to the evaluation that reached the target: rounds, virtual time, and bytes up
    and down."""
    steps = runs.table("steps", ["run", "step", "up_bytes", "down_bytes"], keys=[])
    steps = steps.append_column("bytes", pc.add(steps["up_bytes"], steps["down_bytes"]))
    sent = defaultdict(list)
    for run, step, size in _rows(steps, "run", "step", "bytes"):
        sent[run].append((step, size))
    costs: dict[str, Numbers] = {"rounds": [], "virtual_time": [], "bytes": []}
    for run, hit in zip(runs.runs, hits, strict=True):
        sizes = [size for step, size in sent[run.id] if hit and step <= hit.step]
        costs["rounds"].append(hit and hit.round + 1)  # rounds are counted from 0
        costs["virtual_time"].append(hit and hit.virtual_time)
        costs["bytes"].append(sum(sizes) if hit and None not in sizes else None)
    return costs


def _rows(table: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of some columns, with texts as str."""
    cells = (table[name] for name in columns)
    texts = (c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in cells)
    return zip(*(c.to_pylist() for c in texts), strict=True)
