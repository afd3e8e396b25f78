"""The numbers of runs that a comparison takes: reduced metrics, totals, and the cost of reaching targets."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from results.cost import COSTS, Costs, Point
from results.measure import QUANTILES, TOTALS, Measure, NotComparable, require_of
from results.reader import Run
from results.run_set import RunSet

_WHEN = ["run", "round", "step", "virtual_time"]  # columns that tell evaluations apart
Numbers: TypeAlias = list[float | None]  # a number for each run; None where it has none

_SOURCES = {  # total: (table, column, aggregate)
    "virtual_time": ("evaluations", "virtual_time", "max"),
    "up_bytes": ("steps", "up_bytes", "sum"),
    "down_bytes": ("steps", "down_bytes", "sum"),
    "local_steps": ("updates", "local_steps", "sum"),
    "staleness": ("updates", "staleness", "mean"),
}
_OVER: dict[str, Callable[[list[float]], Any]] = {  # NaN where a member has NaN, which Arrow leaves out of min and max
    "max": np.max,
    "min": np.min,
    "gap": np.ptp,
    **{name: partial(np.quantile, q=share) for name, share in QUANTILES.items()},
}


class Above(float):
    """The cost of a target that a run has not reached: it is more than this, which the run has spent."""


Series: TypeAlias = dict[tuple[str, str], list[Point]]  # evaluations in order, by metric and run


def score(runs: RunSet, measure: Measure) -> dict[str, Numbers]:
    """Returns the numbers of all runs by metric. Those of a target are named rounds_to_accuracy_0.8 and so on; of a run
    that has not reached it, they are `Above`.

    Raises NotComparable where no run evaluated a metric.
    """
    costs = Costs(runs)
    series = _within(runs, series_of(runs, measure), measure, costs)
    numbers: dict[str, Numbers] = {}
    picked = _until_picked(runs, series, measure, costs) if measure.reduce == "at_best_validation" else series
    for metric in measure.metrics:
        if metric in TOTALS:
            numbers[metric] = _total(runs, metric, _last_steps(runs, measure, costs))
        else:
            values = [[point.value for point in picked.get((metric, run.id), [])] for run in runs.runs]
            numbers[metric] = [measure.of(metric, of_run) if of_run else None for of_run in values]
    for metric, target in measure.targets:
        larger = measure.larger_is_better(metric)
        for name in measure.costs:
            spent = (_cost(costs, run, series.get((metric, run.id), []), target, larger, name) for run in runs.runs)
            numbers[f"{name}_to_{metric}_{target:g}"] = list(spent)
    return numbers


def _cost(costs: Costs, run: Run, points: list[Point], target: float, larger: bool | None, name: str) -> float | None:
    """Returns what a run spent until an evaluation was as good as the target; None where that is not known."""
    if hit := _first(points, target, larger):
        return costs.by(run, hit, name)
    spent = costs.by(run, points[-1], name) if points else None
    return None if spent is None else Above(spent)


def _within(runs: RunSet, series: Series, measure: Measure, costs: Costs) -> Series:
    """Returns the evaluations that are within the budget `measure.at`."""
    if measure.at is None:
        return series
    (name, most), of = measure.at, {run.id: run for run in runs.runs}

    def fits(run: Run, point: Point) -> bool:
        spent = costs.by(run, point, name)
        return spent is not None and spent <= most

    return {(metric, run): [p for p in points if fits(of[run], p)] for (metric, run), points in series.items()}


def _until_picked(runs: RunSet, series: Series, measure: Measure, costs: Costs) -> Series:
    """Returns the evaluations up to the one that is best on the validation split, the first one of equally good."""
    on_validation = replace(measure, split="validation", reduce="last")
    validation = _within(runs, series_of(runs, on_validation), measure, costs)
    found: Series = {}
    for (metric, run), points in series.items():
        sign = 1 if measure.larger_is_better(metric) else -1
        defined = [point for point in validation.get((metric, run), []) if not math.isnan(point.value)]
        best = max(defined, key=lambda point: sign * point.value, default=None)
        found[metric, run] = [point for point in points if best and point[:3] <= best[:3]]
    return found


def series_of(runs: RunSet, measure: Measure) -> Series:
    """Returns the evaluations in order, by metric and run."""
    metrics = {*measure.evaluated, *(metric for metric, _ in measure.targets)}
    if not metrics:
        return {}
    wanted = (pc.field("subject") == measure.subject) & (pc.field("split") == measure.split)
    wanted &= pc.field("metric").isin(sorted(metrics))
    if measure.picked:
        wanted &= pc.field("picked") > 0
    key = ["metric", *_WHEN]
    evaluations = runs.table("evaluations", [*key, "value", "samples"], wanted, keys=[])
    evaluations = evaluations.append_column("total", pc.multiply(evaluations["value"], evaluations["samples"]))
    defined = pc.is_valid(evaluations["value"])
    evaluations = evaluations.append_column("counted", pc.if_else(defined, evaluations["samples"], 0))
    over = {"mean": [("value", "mean")], "micro": [("total", "sum"), ("counted", "sum")]}
    wanted_columns = over.get(measure.over, [("value", "list")])
    found = evaluations.group_by(key).aggregate(wanted_columns)
    rows = sorted(_rows(found, *key, *("_".join(pair) for pair in wanted_columns)), key=lambda row: row[:5])
    series = {
        of: [Point(row[2], row[3], row[4], _together(measure.over, *row[5:])) for row in points]
        for of, points in groupby(rows, lambda row: row[:2])
    }
    if lacking := metrics - {metric for metric, _ in series}:
        raise NotComparable(_none(runs, sorted(lacking), measure))
    return series


def _together(over: str, value: Any, samples: int = 1) -> float:
    """Joins what there is of an evaluation's members into one number: their mean; the sum of their values, each times
    its samples; or their values.

    It is NaN if a member's number is, or if no member has one.
    """
    if isinstance(value, list):
        value = _OVER[over](values) if (values := [one for one in value if one is not None]) else None
    return math.nan if value is None else float(value / samples)


def _none(runs: RunSet, lacking: list[str], measure: Measure) -> str:
    """Returns the message for metrics that no run evaluated."""
    key = ["subject", "split", "metric"]
    there = sorted(set(_rows(runs.table("evaluations", key, keys=[]), *key)))
    return (
        f"metric: must be evaluated in a run, for subject {measure.subject} on split {measure.split}, or be a total, "
        f"got {', '.join(lacking)}; evaluated are {'; '.join(map(' '.join, there)) or 'none'}; "
        f"totals are {', '.join(TOTALS)}"
    )


def _last_steps(runs: RunSet, measure: Measure, costs: Costs) -> dict[str, int] | None:
    """Returns the step of the last evaluation of each run within the budget `measure.at`; None if there is none."""
    if measure.at is None:
        return None
    kept = _within(runs, {("", run): points for run, points in evaluated(runs).items()}, measure, costs)
    return {run: points[-1].step for (_, run), points in kept.items() if points}


def evaluated(runs: RunSet) -> dict[str, list[Point]]:
    """Returns when each run was evaluated, in order, by its id. The values are of no metric."""
    found: dict[str, set[Point]] = defaultdict(set)
    for run, *when in _rows(runs.table("evaluations", _WHEN, keys=[]), *_WHEN):
        found[run].add(Point(when[0], when[1], when[2], 0.0))
    return {run: sorted(points) for run, points in found.items()}


def common_budget(runs: RunSet, cost: str) -> float:
    """Returns the largest budget that all runs that are over have spent by their last evaluation; of all runs if none
    is over. Runs that do not say what they spent are left out of account.

    Raises NotComparable for an unknown cost, and where no run says.
    """
    require_of("at", cost, COSTS)
    some = runs.only([run for run in runs.runs if run.over] or runs.runs)
    costs, points = Costs(some), evaluated(some)
    spent = [costs.by(run, points[run.id][-1], cost) for run in some.runs if run.id in points]
    if not (known := [number for number in spent if number is not None]):
        raise NotComparable(f"at: must be a cost that a run says, got {cost!r}; take another one")
    return min(known)


def _total(runs: RunSet, name: str, last: dict[str, int] | None) -> Numbers:
    """Returns a total of each run. last: the step up to which it counts; None: all steps."""
    if name == "seconds":
        return [(run.info.get("seconds") or {}).get("total") for run in runs.runs]
    table, column, aggregate = _SOURCES[name]
    used = pc.field("status") == "used" if name == "staleness" else None  # others count all rows
    rows = runs.table(table, ["run", "step", column], used, keys=[])
    if last is not None:
        steps = pa.array([last.get(run, -1) for run in rows["run"].cast(pa.string()).to_pylist()], pa.int64())
        rows = rows.filter(pc.less_equal(rows["step"], steps))
    found = rows.group_by("run").aggregate([(column, aggregate)])
    of_run = dict(_rows(found, "run", f"{column}_{aggregate}"))
    return [of_run.get(run.id) for run in runs.runs]


def _first(points: list[Point], target: float, larger: bool | None) -> Point | None:
    """Returns the first evaluation that is at least as good as the target."""
    return next((point for point in points if (point.value >= target if larger else point.value <= target)), None)


def _rows(table: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of some columns, with texts as str."""
    cells = (table[name] for name in columns)
    texts = (c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in cells)
    return zip(*(c.to_pylist() for c in texts), strict=True)
