"""Compares runs: takes the mean and spread of each group, with published numbers beside them where there are any."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeFloat, ValidationError

from results.counted import Values, counted_runs, counting, key_axes, note_picked, note_short
from results.keys import UnknownKey, flatten, spell_out
from results.location import location
from results.measure import Measure, NotComparable
from results.ranking import Marks, marks
from results.reader import Run
from results.run_set import RunSet
from results.score import Censored, Numbers, score
from results.store import why
from results.texts import count, in_full, short_names, written
from results.yaml import parse

if TYPE_CHECKING:
    import pandas as pd


_MUST = {"extra_forbidden": "is unknown", "missing": "must be given", "model_type": "must be a block of keys"}


class Published(BaseModel):
    """A published number. All other keys are keys of scenarios, as in `--by`: they say which runs it belongs to."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    value: float
    """The number, in the table's unit."""
    std: NonNegativeFloat | None = None
    """Its standard deviation. null: not published."""
    __pydantic_extra__: dict[str, JsonValue]


class Paper(BaseModel):
    """A table of published numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: str
    """Where the numbers are from, such as "Table 2 of the paper"."""
    metric: str = "accuracy"
    """The metric, as `raysim compare --metric` names it."""
    unit: Literal["percent", "fraction"] = "fraction"
    """Whether values are percentages or as runs measure them."""
    rows: Annotated[list[Published], Field(min_length=1)]


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
    numbers = score(counted, measure)
    counted = _with_a_metric(counted, numbers, measure, notes)
    rows, heads = key_axes(counted, by, columns)
    keys = [*rows, *heads]
    groups = counting(counted, keys, notes)
    ordered = runs.only(run for group in groups.values() for run in group)
    notes += [*note_picked(ordered, measure), *note_short(ordered, measure)]
    frame = _frame(keys, groups, numbers, marks(groups, numbers, len(rows), measure))
    frame = frame if measure.targets else frame.drop(columns="censored")
    return Comparison(frame, tuple(rows), tuple(heads), measure, tuple(notes))


def _with_a_metric(runs: RunSet, numbers: Numbers, measure: Measure, notes: list[str]) -> RunSet:
    """Returns the runs that have any of the metrics, or all runs if none has. Adds a note on the other runs."""
    have = {run for metric in measure.metrics for run in numbers[metric]}
    lack = [run for run in runs.runs if run.id not in have]
    if not lack or len(lack) == len(runs):
        return runs
    what = f"{' or '.join(measure.metrics)} of subject {measure.subject} on split {measure.split}"
    what += f" within {measure.at[0]} {in_full(measure.at[1])}" if measure.at else ""
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


# --- published numbers ------------------------------------------------------------------------------------------------


def read_paper(path: str | os.PathLike[str]) -> Paper:
    """Reads published numbers from a YAML file. Raises NotComparable, with everything that is wrong with the file."""
    try:
        raw = parse(location(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotComparable(f"{path}: cannot be read: {why(error)}") from error
    except ValueError as error:
        raise NotComparable(f"{path}: must be YAML in UTF-8: {error}") from error
    try:
        return Paper.model_validate(raw)
    except ValidationError as error:
        raise NotComparable("\n".join(f"{path}: {_problem(details)}" for details in error.errors())) from None


def _problem(details: Any) -> str:
    where = ".".join(map(str, details["loc"])) or "the file"
    must = _MUST.get(details["type"]) or details["msg"].replace("Input should", "must")
    return f"{where}: {must}, got {details['input']!r}"


def beside(comparison: Comparison, paper: Paper) -> Comparison:
    """Adds published numbers to a comparison, each to the group of runs whose keys have the values of its row.

    Raises NotComparable for a metric or a key that runs are not compared by, for a row that fits several groups, and
    for a second row of one group.
    """
    if paper.metric not in comparison.measure.metrics:
        names = ", ".join(comparison.measure.metrics)
        raise NotComparable(f"{paper.title}: metric: must be one that is compared, {names}, got {paper.metric!r}")
    frame = comparison.frame.assign(paper=np.nan, paper_std=np.nan, difference=np.nan)
    keys = (*comparison.by, *comparison.columns)
    scale = 100 if paper.unit == "percent" else 1
    not_run = []
    for number, row in enumerate(paper.rows):
        where = f"{paper.title}: rows.{number}"
        wanted = {_key_of_rows(key, keys, where): value for key, value in flatten(row.model_extra or {}).items()}
        chosen = frame["metric"] == paper.metric
        for key, value in wanted.items():
            chosen &= frame[key].map(written) == written(value)
        if chosen.sum() > 1:
            others = ", ".join(key for key in keys if key not in wanted)
            raise NotComparable(f"{where}: must fit one group of runs, got {chosen.sum()} groups; give it {others} too")
        if frame.loc[chosen, "paper"].notna().any():
            raise NotComparable(f"{where}: must be the only row of its group, got a second")
        value, std = row.value / scale, np.nan if row.std is None else row.std / scale
        frame.loc[chosen, ["paper", "paper_std"]] = value, std
        frame.loc[chosen, "difference"] = frame.loc[chosen, "mean"] - value
        if not chosen.any():
            which = ", ".join(f"{name}={written(wanted[key])}" for key, name in short_names(wanted).items())
            not_run.append(f"{which}: {row.value:g}{' %' if scale == 100 else ''}")
    return replace(comparison, frame=frame, paper=paper, not_run=tuple(not_run))


def _key_of_rows(key: str, keys: tuple[str, ...], where: str) -> str:
    try:
        return spell_out(key, keys)
    except UnknownKey:
        must = f"must have keys that make rows or columns ({', '.join(keys)}), got {key!r}"
        raise NotComparable(f"{where}: {must}; see --by, --columns") from None
