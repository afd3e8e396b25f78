"""Compares runs: groups those that differ in their seed alone, and takes the mean and spread of each group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from results.cost import Costs
from results.groups import Values, alike, key_axes, once_a_seed
from results.measure import Measure, NotComparable
from results.ranking import Marks, marks
from results.reader import Run
from results.run_set import RunSet
from results.score import Above, evaluated, score
from results.texts import count, in_full

if TYPE_CHECKING:
    import pandas as pd

    from results.paper import Paper


@dataclass(frozen=True)
class Comparison:
    """The result of comparing runs."""

    frame: pd.DataFrame
    """One row for each group and metric. Columns: the group's keys; metric; mean; std, the sample standard deviation
    over runs, NaN for one run; runs, how many have the number; missing, how many do not. With targets also censored,
    how many runs have not reached one: their cost is above what they have spent, with which they count in the mean, so
    that it is a lower bound, and has no std. best, whether it is the best mean of its metric and its values of
    `columns`; p, of the test against that one, Holm-corrected, see `results.ranking`, NaN where nothing was tested.
    Published numbers add paper, paper_std and difference, mean - paper."""
    by: tuple[str, ...]
    """The keys whose values make rows."""
    columns: tuple[str, ...]
    """The keys whose values make columns."""
    measure: Measure
    notes: tuple[str, ...]
    """A line for each run that does not count, with the reason, and for each unfinished run that does. Runs without
    any of the metrics share one."""
    paper: Paper | None = None
    """The published numbers, where there are any."""
    not_run: tuple[str, ...] = ()
    """The published numbers for which there are no runs."""


def compare(
    runs: RunSet, by: Iterable[str] | None, columns: Iterable[str], measure: Measure, unfinished: bool
) -> Comparison:
    """Groups runs by the values of the keys `by` and `columns`; see `Runs.compare` for the arguments.

    Raises UnknownKey; NotARun; NotComparable where runs of a group differ in more than their seed, or no run is left.
    """
    counted, notes = counted_runs(runs, unfinished)
    counted, numbers = _scored(counted, measure, notes)
    rows, heads = key_axes(counted, by, columns)
    keys = [*rows, *heads]
    groups = counting(counted, keys, notes)
    ordered = runs.only(run for group in groups.values() for run in group)
    notes += [*note_picked(ordered, measure), *note_short(ordered, measure)]
    frame = _frame(keys, groups, numbers, marks(groups, numbers, len(rows), measure))
    frame = frame if measure.targets else frame.drop(columns="censored")
    return Comparison(frame, tuple(rows), tuple(heads), measure, tuple(notes))


def _scored(runs: RunSet, measure: Measure, notes: list[str]) -> tuple[RunSet, dict[str, dict[Run, float | None]]]:
    """Returns the runs that have any of the metrics, and numbers by name and run. Adds a note on the other runs."""
    found = {name: dict(zip(runs.runs, numbers, strict=True)) for name, numbers in score(runs, measure).items()}
    have = {run for run in runs.runs if any(found[metric][run] is not None for metric in measure.metrics)}
    lack = [run for run in runs.runs if run not in have]
    if not lack or not have:
        return runs, found
    what = f"{' or '.join(measure.metrics)} of subject {measure.subject} on split {measure.split}"
    what += f" within {measure.at[0]} {in_full(measure.at[1])}" if measure.at else ""
    notes.append(f"left out: {count(len(lack), 'run')} without {what}, such as {lack[0].folder}")
    return runs.only(run for run in runs.runs if run in have), found


def counting(runs: RunSet, keys: Sequence[str], notes: list[str]) -> dict[Values, list[Run]]:
    """Returns the runs that count, one for each seed, by the values of keys, in rising order; a missing value comes
    first. Adds a note for each other run.

    Raises NotComparable where runs of a group differ in more than their seed.
    """
    groups = alike(runs, keys)
    counted = {}
    for values in sorted(groups, key=lambda values: [(value is not None, value) for value in values]):
        counted[values], left_out = once_a_seed(groups[values])
        notes += left_out
    return counted


def counted_runs(runs: RunSet, unfinished: bool) -> tuple[RunSet, list[str]]:
    """Returns the runs that are over, or all of them, and a note on each that is not finished."""
    notes = []
    for run in runs.runs:
        declared = ", declared over" if run.info.get("declared_over") else ""
        then = f"{declared}; {'counts' if unfinished or run.over else 'left out'}"
        if run.diverged:
            notes.append(f"{run.folder}: diverged, {run.diverged}{then}")
        elif run.status != "finished":
            note = f", {run.note}" if run.note and not declared else ""
            notes.append(f"{run.folder}: {run.standing}{note}{then}")
    counted = runs if unfinished else runs.only(run for run in runs.runs if run.over)
    if not len(counted):
        text = "runs: must be over to be compared, got none; add --unfinished, or declare them over with `raysim end`"
        raise NotComparable("\n".join([*notes, text]))
    return counted, notes


def note_picked(runs: RunSet, measure: Measure) -> list[str]:
    """Returns a note on clients that never took part, if the comparison counts any."""
    if measure.subject != "client" or measure.picked or not (note := never_picked(runs)):
        return []
    return [f"{note}; --picked leaves them out"]


def never_picked(runs: RunSet) -> str | None:
    """Says how many clients had never taken part when they were last evaluated; None if all had in every run."""
    own = (pc.field("subject") == "client") & pc.is_valid(pc.field("picked"))
    rows = runs.pandas("evaluations", ["run", "round", "member", "picked"], own, keys=[]).astype({"run": str})
    last = rows[rows["round"] == rows.groupby("run")["round"].transform("max")]
    evaluated = last.groupby("run")["member"].nunique()
    never = last[last["picked"] == 0].groupby("run")["member"].nunique().reindex(evaluated.index, fill_value=0)
    if not never.any():
        return None
    some = f"{never.min()} to {never.max()}" if never.min() < never.max() else str(never.max())
    where = "in a run" if len(never) > 1 else "in it"
    return f"{some} of {evaluated.max()} evaluated clients never took part {where}, and count with what they began with"


def note_short(runs: RunSet, measure: Measure) -> list[str]:
    """Returns a note on runs that ended before they had spent the budget by which runs are compared, and one on each
    that does not say what it spent."""
    if measure.at is None:
        return []
    (name, most), costs, points = measure.at, Costs(runs), evaluated(runs)
    notes = []
    short: dict[Run, float] = {}
    for run in runs.runs:
        spent = costs.by(run, points[run.id][-1], name) if run.id in points else None
        if spent is None:
            notes.append(f"{run.folder}: has no number, because it does not say its {name}")
        elif spent < most and run.info.get("ended_by") != name:
            short[run] = spent
    if len(short) > 1:
        span = f"{in_full(min(short.values()))} to {in_full(max(short.values()))}"
        which = f"{len(short)} of {count(len(runs), 'run')} ended before {name} {in_full(most)} ({span})"
        which += f", such as {next(iter(short)).folder}" if len(short) < len(runs) else ""
        notes.append(f"{which}; they count with what they had by then")
    for run, spent in short.items() if len(short) == 1 else ():
        text = f"ended at {name} {in_full(spent)}, before {in_full(most)}; counts with what it had by then"
        notes.append(f"{run.folder}: {text}")
    return notes


def _frame(
    keys: list[str], groups: dict[Values, list[Run]], numbers: dict[str, dict[Run, float | None]], marked: Marks
) -> pd.DataFrame:
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for values, group in groups.items():
        for metric, of_runs in numbers.items():
            found = [number for run in group if (number := of_runs[run]) is not None]
            above = sum(isinstance(number, Above) for number in found)
            mean, std = _mean_and_std(found)
            counts = (len(found) - above, len(group) - len(found), above)
            marks_of = marked.get((values, metric), (False, np.nan))
            rows.append((*values, metric, mean, np.nan if above else std, *counts, *marks_of))
    return pd.DataFrame(rows, columns=[*keys, "metric", "mean", "std", "runs", "missing", "censored", "best", "p"])


def _mean_and_std(numbers: list[float]) -> tuple[float, float]:
    """Returns the mean and sample standard deviation; NaN where there are too few numbers."""
    with np.errstate(invalid="ignore"):  # a loss may be infinite
        mean = float(np.mean(numbers)) if numbers else np.nan
        return mean, float(np.std(numbers, ddof=1)) if len(numbers) > 1 else np.nan
