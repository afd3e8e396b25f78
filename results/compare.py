"""Compares runs: takes the mean and spread of each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from results.chance import context
from results.counted import Values, counted_runs, counting, key_axes, note_short
from results.groups import described
from results.measure import Measure
from results.ranking import Marks, marks, unlike
from results.reader import Run
from results.run_set import RunSet
from results.score import Censored, Numbers, score
from results.texts import count, in_full, written

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """The result of comparing runs, group by group or, where `paired`, seed by seed, see `results.paired`."""

    frame: pd.DataFrame
    """One row for each group and metric. Columns: the group's keys; metric; mean; std, the sample standard deviation
    over runs, NaN for one run; runs, how many have the number; missing, how many do not. With targets also censored,
    how many runs have not reached one: their cost is above what they have spent, with which they count in the mean, so
    that it is a lower bound, and has no std. best, whether it is the best mean of its metric and its values of
    `columns`; p, of the test against that one, Holm-corrected, see `results.ranking`, NaN where nothing was tested.
    Where `paired`, a row for each case and metric: the keys' values, of lists of parts their names, such as
    top_k+quantise, where these tell cases apart; baseline; metric; the fields of Difference; and
    p_holm: p, corrected over all cases of the metric (Holm 1979)."""
    by: tuple[str, ...]
    """The keys whose values make rows."""
    measure: Measure
    notes: tuple[str, ...]
    """A line for each run that does not count, with the reason, and for each unfinished run that does. Runs without
    any of the metrics share one."""
    columns: tuple[str, ...] = ()
    """The keys whose values make columns."""
    paired: bool = False
    context: tuple[str, ...] = ()
    """Lines to read it by: what is not comparable, and what constant predictions and first evaluations score, see
    `results.ranking`."""
    names: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """The name of the scenarios of each row, by its values as texts; empty where they have several. No names where `by`
    was given, or where all are the same."""
    what: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """The values of keys in which each row differs from most others; where `by` has `name`, of all keys that differ. Of
    pairs, also of each baseline, and empty unless `by` has `name`."""
    usual: str = ""
    """The values that more than half of the rows have, which `what` leaves out."""


def compare(
    runs: RunSet, by: Iterable[str] | None, columns: Iterable[str], measure: Measure, unfinished: bool
) -> Comparison:
    """Groups runs by the values of the keys `by` and `columns`; see `Runs.compare` for the arguments.

    Raises UnknownKey; NotARun; NotComparable where runs of a group differ in more than their seed, or no run is left.
    """
    counted, notes = counted_runs(runs, unfinished)
    numbers = score(counted, measure)
    counted = _with_a_metric(counted, numbers, measure, notes)
    rows, heads = key_axes(counted, by, columns)
    keys = [*rows, *heads]
    groups = counting(counted, keys, notes)
    ordered = runs.only(run for group in groups.values() for run in group)
    notes += note_short(ordered, measure)
    frame = _frame(keys, groups, numbers, marks(groups, numbers, len(rows), measure))
    frame = frame if measure.targets else frame.drop(columns="censored")
    told = [*unlike(ordered, [*numbers], measure), *context(ordered, groups, numbers, measure)]
    names, what, usual = about(counted, rows, heads, groups)
    names = names if by is None and len({*names.values()}) > 1 else {}
    return Comparison(frame, tuple(rows), measure, tuple(notes), tuple(heads), False, tuple(told), names, what, usual)


def about(
    runs: RunSet, rows: Sequence[str], heads: Sequence[str], groups: Mapping[Values, Sequence[Run]]
) -> tuple[dict[tuple[str, ...], str], dict[tuple[str, ...], str], str]:
    """Returns `Comparison.names`, with an empty text where a row has several, `what` and `usual`."""
    of_rows: dict[tuple[str, ...], list[Run]] = {}
    for values, group in groups.items():
        of_rows.setdefault(tuple(map(written, values[: len(rows)])), []).extend(group)
    keys = [key for key in key_axes(runs, None, heads)[0] if key not in rows] if "name" in rows else rows
    what, usual = described(keys, [of_row[0].keys for of_row in of_rows.values()])
    names = {row: {str(run.keys.get("name", "")) for run in of_row} for row, of_row in of_rows.items()}
    single = {row: found.pop() if len(found) == 1 else "" for row, found in names.items()}
    return single, dict(zip(of_rows, what, strict=True)), usual


def _with_a_metric(runs: RunSet, numbers: Numbers, measure: Measure, notes: list[str]) -> RunSet:
    """Returns the runs that have any of the metrics, or all runs if none has. Adds a note on the other runs."""
    have = {run for metric in measure.metrics for run in numbers[metric]}
    lack = [run for run in runs.runs if run.id not in have]
    if not lack or len(lack) == len(runs):
        return runs
    what = f"{' or '.join(measure.metrics)} of subject {measure.subject} on split {measure.split}"
    what += f" with {measure.at[0]} at most {in_full(measure.at[1])}" if measure.at else ""
    notes.append(f"left out: {count(len(lack), 'run')} without {what}, such as {lack[0].folder}")
    return runs.only(run for run in runs.runs if run.id in have)


def _frame(
    keys: Sequence[str], groups: Mapping[Values, Sequence[Run]], numbers: Numbers, marked: Marks
) -> pd.DataFrame:
    import pandas as pd

    rows: list[tuple[Any, ...]] = []
    for values, group in groups.items():
        for metric, of_runs in numbers.items():
            found = [of_runs[run.id] for run in group if run.id in of_runs]
            censored = sum(isinstance(number, Censored) for number in found)
            with np.errstate(invalid="ignore"):  # a loss may be infinite
                mean = float(np.mean(found)) if found else np.nan
                std = float(np.std(found, ddof=1)) if len(found) > 1 and not censored else np.nan
            counts = (len(found) - censored, len(group) - len(found), censored)
            rows.append((*values, metric, mean, std, *counts, *marked.get((values, metric), (False, np.nan))))
    return pd.DataFrame(rows, columns=[*keys, "metric", "mean", "std", "runs", "missing", "censored", "best", "p"])
