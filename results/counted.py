"""Which runs a comparison counts, with notes on the others and on what their numbers leave out of account."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow.compute as pc

from results.groups import Values, alike, once_a_seed
from results.measure import Measure, NotComparable
from results.reader import Run
from results.readings import last, moments
from results.run_set import RunSet
from results.texts import count, in_full


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
    ends = rows[rows["round"] == rows.groupby("run")["round"].transform("max")]
    evaluated = ends.groupby("run")["member"].nunique()
    never = ends[ends["picked"] == 0].groupby("run")["member"].nunique().reindex(evaluated.index, fill_value=0)
    if not never.any():
        return None
    some = f"{never.min()} to {never.max()}" if never.min() < never.max() else str(never.max())
    where = "in a run" if len(never) > 1 else "in it"
    return f"{some} of {evaluated.max()} evaluated clients never took part {where}, and count with what they began with"


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


def note_short(runs: RunSet, measure: Measure) -> list[str]:
    """Returns a note on runs that ended before they had spent the budget by which runs are compared, and one on each
    that does not say what it spent."""
    if measure.at is None:
        return []
    name, most = measure.at
    ends = last(moments(runs, [name]), "run").set_index("run")[name]
    spent = {run: float(ends[run.id]) for run in runs.runs if run.id in ends.index}
    notes = [
        f"{run.folder}: has no number, because it does not say its {name}" for run in spent if math.isnan(spent[run])
    ]
    short = {run: cost for run, cost in spent.items() if cost < most and run.info.get("ended_by") != name}
    if len(short) == 1:
        ((run, cost),) = short.items()
        text = f"ended at {name} {in_full(cost)}, before {in_full(most)}; counts with what it had by then"
        notes.append(f"{run.folder}: {text}")
    elif short:
        span = f"{in_full(min(short.values()))} to {in_full(max(short.values()))}"
        which = f"{len(short)} of {count(len(runs), 'run')} ended before {name} {in_full(most)} ({span})"
        which += f", such as {next(iter(short)).folder}" if len(short) < len(runs) else ""
        notes.append(f"{which}; they count with what they had by then")
    return notes
