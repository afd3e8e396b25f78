"""Which runs are a group, because they differ in their seed alone; which of them count, with notes on the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias

from results.keys import Value, spell_out, varying
from results.measure import Measure, NotComparable
from results.reader import Run
from results.readings import last, moments
from results.run_set import RunSet
from results.texts import count, in_full

Values: TypeAlias = tuple[Value, ...]
"""Of the keys that tell groups apart."""

_SILENT = ("name", "seed", "run.save_clients", "run.log", "run.observers")
# Other keys of `resources` change no number, except for last bits where a GPU is used.
_NUMERIC = tuple(f"resources.{key}" for key in ("chunk", "shards", "threads"))


def key_axes(runs: RunSet, by: Iterable[str] | None, columns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the keys that make rows and those that make columns, each with its whole path."""
    heads = list(dict.fromkeys(spell_out(key, runs.known) for key in columns))
    if by is None:
        return _differing(runs, heads), heads
    rows = list(dict.fromkeys(spell_out(key, runs.known) for key in by))
    if both := [key for key in rows if key in heads]:
        raise NotComparable(f"columns: must be other keys than those of --by, got {', '.join(both)} in both")
    return rows, heads


def _differing(runs: RunSet, heads: list[str]) -> list[str]:
    """Returns the keys that tell groups apart, without those that the name of a part determines.

    For example, `algorithm.buffer` is left out where it is the same in all runs that have it: `algorithm.name` says as
    much.
    """
    keys = [key for key in runs.varying if tells(key) and key not in heads]
    alike = {
        key for key in keys if not varying([{key: scenario[key]} for scenario in runs.scenarios if key in scenario])
    }
    without = [key for key in keys if key not in alike]
    needed = {key for group in members(runs, [*without, *heads]).values() for key in group.varying}
    return [key for key in keys if key not in alike or key in needed]


def tells(key: str) -> bool:
    """Whether a run's numbers may depend on a key. The seed does not count."""
    if key.startswith("resources."):
        return key in _NUMERIC
    return not (key in _SILENT or key.startswith("run.checkpoint.") or key.endswith("forked_from.run"))


def members(runs: RunSet, keys: Iterable[str]) -> dict[Values, RunSet]:
    """Returns the runs by the values of keys, in order of appearance."""
    columns = [values.to_pylist() for values in runs.keys(keys).values()]
    of_values: dict[Values, list[Run]] = {}
    for place, run in enumerate(runs.runs):
        of_values.setdefault(tuple(column[place] for column in columns), []).append(run)
    return {values: runs.only(group) for values, group in of_values.items()}


def beyond(group: RunSet, keys: Collection[str]) -> list[str]:
    """Returns the keys beside these and the seed in which runs differ, so that they are no group."""
    return [key for key in group.varying if tells(key) and key not in keys]


def alike(runs: RunSet, keys: Sequence[str]) -> dict[Values, RunSet]:
    """Returns the runs by the values of keys, in order of appearance.

    Raises NotComparable where runs of a group differ in more than their seed.
    """
    groups = members(runs, keys)
    for values, group in groups.items():
        if other := beyond(group, keys):
            which = ", ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
            raise NotComparable(
                f"runs that cannot be compared: {f'those with {which}' if which else 'all'} must differ in seed only, "
                f"got several values of {', '.join(other)}; add --by KEY, for example --by {other[0]}"
            )
    return groups


def once_a_seed(group: RunSet) -> tuple[list[Run], list[str]]:
    """Returns the newest run of each seed, finished ones first, and a note on each run that is left out."""
    seeds = {run: scenario.get("seed") for run, scenario in zip(group.runs, group.scenarios, strict=True)}
    oldest_first = sorted(seeds, key=lambda run: (run.over, run.info.get("finished_at") or "", run.id))
    kept = {seeds[run]: run for run in oldest_first}
    notes = [
        f"{run.folder}: left out, because {kept[seed].folder} has the same scenario and seed"
        for run, seed in seeds.items()
        if kept[seed] is not run
    ]
    return [run for run, seed in seeds.items() if kept[seed] is run], notes


def rising(values: Values) -> list[tuple[bool, Any]]:
    """Returns what values of keys are sorted by: a missing one comes first."""
    return [(value is not None, value) for value in values]


def counting(runs: RunSet, keys: Sequence[str], notes: list[str]) -> dict[Values, list[Run]]:
    """Returns the runs that count, one for each seed, by the values of keys, in rising order; a missing value comes
    first. Adds a note for each other run.

    Raises NotComparable where runs of a group differ in more than their seed.
    """
    groups = alike(runs, keys)
    counted = {}
    for values in sorted(groups, key=rising):
        counted[values], left_out = once_a_seed(groups[values])
        notes += left_out
    return counted


# --- which runs count, and what is not in their numbers ---------------------------------------------------------------


def counted_runs(runs: RunSet, unfinished: bool) -> tuple[RunSet, list[str]]:
    """Returns the runs that are over, or all of them, and a note on each that is not finished."""
    notes = []
    for run in runs.runs:
        then = "; counts" if unfinished or run.over else "; left out"
        if run.diverged:
            notes.append(f"{run.folder}: diverged, {run.diverged}{then}")
        elif run.status != "finished":
            note = f", {run.note}" if run.note else ""
            notes.append(f"{run.folder}: {run.standing}{note}{then}")
    counted = runs if unfinished else runs.only(run for run in runs.runs if run.over)
    if not len(counted):
        text = "runs: must have ended to be compared, got none; add --unfinished"
        raise NotComparable("\n".join([*notes, text]))
    return counted, notes


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
    short = [run for run, cost in spent.items() if cost < most and run.info.get("ended_by") != name]
    if short:
        which = f"{len(short)} of {count(len(runs), 'run')} ended before {name} {in_full(most)}"
        notes.append(f"{which}, such as {short[0].folder}; they count with what they had by then")
    return notes
