"""Lists of runs, with a line for each run, or for each folder of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from results.groups import grouped
from results.run_set import RunSet
from results.texts import count
from results.views import View

Line = tuple[str, ...]
_HEADS = ("run", "what", "status", "rounds", "t")


def lines(views: Sequence[View]) -> tuple[Line, list[Line], list[str]]:
    """Returns a line for each run that lies in the folder that was looked at, and one for each folder of runs in it.

    Before them, it returns their heads, of which the last one is the metric, or `last` where metrics differ; and after
    them a line for each run in the folder that did not go to its end, which says why.
    """
    names = labels(views)
    found: list[Line] = []
    reasons: list[str] = []
    for name, group in groupby(views, lambda one: one.path.partition("/")[0]):
        inside = list(group)
        if [one.path for one in inside] == [name]:
            one = inside[0]
            time = "" if one.virtual_time is None else f"{one.virtual_time:.6g}"
            found.append((name, names.get(one.path, ""), one.status, one.progress, time, *one.last))
            reasons += [f"{name}: {one.why}"] if one.why and one.status != "running" else []
        else:
            found.append(_of_folder(name, inside))
    metrics = {line[-2] for line in found} - {""}
    if len(metrics) == 1:
        return (*_HEADS, metrics.pop()), [(*line[:-2], line[-1]) for line in found], reasons
    return (*_HEADS, "last"), [(*line[:-2], " ".join(line[-2:]).strip()) for line in found], reasons


def labels(views: Sequence[View], seeds: bool = True) -> dict[str, str]:
    """Returns, by a run's path, what tells it from the others: values of the keys in which they differ.

    seeds: whether the seed is one of them.
    """
    runs = RunSet([one.run for one in views if one.run])
    if not runs.runs:
        return {}
    groups, seeds = grouped(runs, named=False), seeds and "seed" in runs.varying
    of = {run.id: group.label for group in groups.groups for run in group.runs}
    return {
        one.path: of[one.run.id] + (f", seed={one.run.info.get('seed')}" if seeds else "") for one in views if one.run
    }


def states(views: Iterable[View]) -> str:
    """Says how many runs there are of each status."""
    return ", ".join(f"{number} {status}" for status, number in Counter(one.status for one in views).items())


def _of_folder(name: str, inside: Sequence[View]) -> Line:
    """Returns the line of a folder, such as that of a sweep."""
    rounds = [one.rounds for one in inside if one.rounds is not None]
    times = [one.virtual_time for one in inside if one.virtual_time is not None]
    ends = [(one.curves[0].label, one.curves[0].values[-1]) for one in inside if one.curves]
    alike = len({label for label, _ in ends}) == 1
    last = (ends[0][0], _range([value for _, value in ends], ".4g")) if alike else ("", "")
    return f"{name}/", count(len(inside), "run"), states(inside), _range(rounds, "d"), _range(times, ".6g"), *last


def _range(values: Sequence[float], form: str) -> str:
    if not values:
        return ""
    low, high = (f"{end:{form}}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
