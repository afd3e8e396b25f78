"""What the tables of runs say: a row for each run, metric and evaluation, with its value and what was spent by then.

All that compares or shows runs starts from these rows, so that they agree on what a value is. Of clients, unseen
clients and peers, each of whom is evaluated by itself, the values of an evaluation are joined into one: a value that is
null is left out, because the metric is not defined there, and NaN makes NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from results.reader import Run
from results.run_set import RunSet

if TYPE_CHECKING:
    import pandas as pd
    from pandas.core.groupby import SeriesGroupBy

COSTS = ("rounds", "virtual_time", "updates", "bytes", "up_bytes", "down_bytes", "flops", "energy")
"""What runs can spend. bytes: up and down together. flops: those of clients. energy: in joules, of clients with the
power that the scenario says, from their dispatch to their arrival, whether or not the update was used."""
REAL_TIME = "seconds"
"""Real time, which can be asked for as costs are. It differs between two runs of one scenario."""

MOMENT = ("round", "step", "virtual_time")
"""Columns that tell the evaluations of a run apart, and their order."""
WHAT = ("subject", "split", "metric")
"""Columns that say what was evaluated."""
QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
OVER = ("mean", "micro", "min", "max", "gap", *QUANTILES)
"""How members' values are joined. micro: their mean, weighted by the samples that each is evaluated on."""

_ON_LISTS: dict[str, Callable[[list[float]], Any]] = {  # Arrow leaves NaN out of min and max
    "min": np.min,
    "max": np.max,
    "gap": np.ptp,
    **{name: partial(np.quantile, q=share) for name, share in QUANTILES.items()},
}
_OF_STEPS = {  # summed columns
    "updates": ("used",),
    "bytes": ("up_bytes", "down_bytes"),
    "up_bytes": ("up_bytes",),
    "down_bytes": ("down_bytes",),
    "flops": ("client_flops",),
}


def values(
    runs: RunSet,
    metrics: Collection[str] | None = None,
    subjects: Collection[str] | None = None,
    splits: Collection[str] | None = None,
) -> pa.Table:
    """Returns the rows of the table `evaluations`, one for each model that was evaluated, in order of evaluation.

    Columns: run, WHAT, MOMENT, member, samples and value. metrics, subjects, splits: those that are asked for; None:
    all.
    """
    wanted = pc.scalar(True)
    for column, names in zip(("metric", "subject", "split"), (metrics, subjects, splits), strict=True):
        if names is not None:
            wanted &= pc.field(column).isin(pa.array(sorted(names), pa.string()))
    rows = runs.table("evaluations", ["run", *WHAT, *MOMENT, "member", "samples", "value"], wanted, keys=[])
    return in_order(rows)


def over_members(rows: pa.Table, over: str = "mean") -> pa.Table:
    """Joins rows of one evaluation that differ in their member only, and returns them in order of evaluation.

    Columns: those of `rows` that tell evaluations apart; value, null where no member has one; lowest and highest, of
    the values that are numbers; and members, how many rows there were. over: one of OVER; micro needs `samples`.
    """
    keys = [name for name in rows.column_names if name in ("run", *WHAT, *MOMENT)]
    asked: list[Any] = [("value", "mean"), ("value", "min"), ("value", "max")]
    asked.append(("value", "count", pc.CountOptions(mode="all")))
    if over == "micro":
        counted = pc.if_else(pc.is_valid(rows["value"]), rows["samples"], 0)
        rows = rows.append_column("total", pc.multiply(rows["value"], rows["samples"]))
        rows = rows.append_column("counted", counted)
        asked += [("total", "sum"), ("counted", "sum")]
    elif over in _ON_LISTS:
        asked.append(("value", "list"))
    found = rows.unify_dictionaries().group_by(keys, use_threads=False).aggregate(asked)
    joined = found["value_mean"]
    if over == "micro":
        joined = pc.divide(found["total_sum"], pc.cast(found["counted_sum"], pa.float64()))
    elif over in _ON_LISTS:
        lists = ([value for value in members if value is not None] for members in found["value_list"].to_pylist())
        joined = pa.array([float(_ON_LISTS[over](known)) if known else None for known in lists], pa.float64())
    columns = {name: found[name] for name in keys} | {"value": joined}
    columns |= {"lowest": found["value_min"], "highest": found["value_max"], "members": found["value_count"]}
    return in_order(pa.table(columns))


def in_order(rows: pa.Table) -> pa.Table:
    """Returns rows in order of evaluation, as far as they say when that was."""
    keys = [(name, "ascending") for name in MOMENT if name in rows.column_names]
    return rows.sort_by(keys) if keys else rows


def readings(
    runs: RunSet,
    metrics: Collection[str] | None = None,
    subjects: Collection[str] | None = None,
    splits: Collection[str] | None = None,
    *,
    over: str = "mean",
    costs: Sequence[str] = (),
) -> pd.DataFrame:
    """Returns one row for each run, subject, split, metric and evaluation, in order of evaluation.

    Columns: run and seed; those of `over_members`, value being NaN also where no member has one; and each of the costs,
    see `with_costs`. For the arguments, see `values` and `over_members`.
    """
    rows = over_members(values(runs, metrics, subjects, splits), over)
    return with_costs(runs, _plain(rows), costs)


def moments(runs: RunSet, costs: Sequence[str] = ()) -> pd.DataFrame:
    """Returns one row for each evaluation of a run, whatever it evaluated, in order: run, MOMENT, seed and costs."""
    rows = runs.table("evaluations", ["run", *MOMENT], keys=[])
    rows = rows.group_by(rows.column_names, use_threads=False).aggregate([])
    return with_costs(runs, _plain(in_order(rows)), costs)


def _plain(rows: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = rows.to_pandas()
    return frame.astype({name: str for name in frame if name in ("run", *WHAT)})


def of_models(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows that say how good runs are: those of the global model or, in runs without one, of peers
    together. How far peers are apart is left out."""
    with_model = frame["run"][frame["subject"] == "global"].unique()
    together = (frame["subject"] == "peers") & ~frame["run"].isin(with_model) & ~are_apart(frame["metric"])
    return frame[(frame["subject"] == "global") | together]


def are_apart(metrics: pd.Series[str]) -> pd.Series[bool]:
    """Returns which metrics of the subject `peers` say how far peers are apart, and not how good they are together."""
    return metrics.str.startswith("consensus") | metrics.str.endswith(("_min", "_max", "_gap"))


def with_costs(runs: RunSet, frame: pd.DataFrame, costs: Sequence[str]) -> pd.DataFrame:
    """Adds each run's seed, and a column for each cost: what the run had spent by an evaluation.

    frame: with run and MOMENT. costs: of COSTS, or REAL_TIME. It is NaN where tables or scenario do not say.
    """
    seeds = {run.id: scenario.get("seed") for run, scenario in zip(runs.runs, runs.scenarios, strict=True)}
    added: dict[str, Any] = {"seed": frame["run"].map(seeds)}
    places = frame.groupby("run").indices
    summed = _summed(runs, costs)
    for cost in costs:
        if cost == "rounds":
            added[cost] = frame["round"] + 1.0  # they are counted from 0
        elif cost != "virtual_time":
            when = frame["virtual_time" if cost == "energy" else "step"].to_numpy()
            added[cost] = np.full(len(frame), np.nan)
            for run, at, sums in _energy(runs) if cost == "energy" else summed[cost]:
                here = places.get(run, [])
                before = np.searchsorted(at, when[here], side="right")
                added[cost][here] = np.concatenate([[0.0], sums])[before]
    return frame.assign(**added)


Spent = tuple[str, NDArray[np.float64], NDArray[np.float64]]  # a run, steps or times, and what it had spent by each


def _summed(runs: RunSet, costs: Collection[str]) -> dict[str, list[Spent]]:
    """Returns what runs spent by each of their steps, by cost."""
    columns = {cost: of for cost, of in {**_OF_STEPS, REAL_TIME: ("elapsed_s",)}.items() if cost in costs}
    if not columns:
        return {}
    wanted = dict.fromkeys(name for of in columns.values() for name in of)
    steps = runs.pandas("steps", ["run", "step", *wanted], keys=[])
    found: dict[str, list[Spent]] = {cost: [] for cost in columns}
    for run, rows in steps.groupby("run", observed=True):
        for cost, of in columns.items():
            numbers = sum(rows[name].to_numpy(float) for name in of)
            sums: Any = numbers if cost == REAL_TIME else np.cumsum(numbers)
            found[cost].append((str(run), rows["step"].to_numpy(float), sums))
    return found


def _energy(runs: RunSet) -> Iterator[Spent]:
    """Yields what runs with powers spent by each arrival."""
    watts = {run.id: np.asarray(power, float) for run in runs.runs if (power := run.info.get("watts")) is not None}
    columns, arrived = ["run", "client", "dispatched_at", "arrived_at"], pc.is_valid(pc.field("arrived_at"))
    updates = runs.only(run for run in runs.runs if run.id in watts).pandas("updates", columns, arrived, keys=[])
    for run, rows in updates.sort_values("arrived_at", kind="stable").groupby("run", observed=True):
        power, lasted = watts[str(run)], rows["arrived_at"] - rows["dispatched_at"]
        of_each = power[rows["client"].to_numpy(int)] if power.ndim else power  # that of each client, or of any
        yield str(run), rows["arrived_at"].to_numpy(), np.cumsum(of_each * lasted.to_numpy())


def epsilon_of(run: Run) -> float | None:
    """Returns the epsilon of the most exposed client of a run: infinite without `privacy`, or without noise; None where
    the run does not say it yet."""
    if (run.info.get("scenario") or {}).get("privacy") is None:
        return math.inf
    found = run.info.get("privacy")
    return None if found is None else math.inf if found["epsilon"] is None else float(found["epsilon"])


def with_nan(table: pd.DataFrame, values: SeriesGroupBy[Any, Any]) -> pd.DataFrame:
    """Returns a table of aggregates of grouped values with NaN where a value is NaN, which pandas leaves out."""
    return table.astype(float).where(values.count() == values.size())


def last(frame: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Returns the last row of each of these, such as of each run."""
    return frame.drop_duplicates([*by], keep="last")
