"""Lists of runs, with a line for each run, or for each folder of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from results.groups import grouped
from results.run_set import RunSet
from results.texts import count
from results.views import View

Line = tuple[str, ...]
_HEADS = ("run", "what", "status", "rounds", "t")


class Listing(NamedTuple):
    """Lines of texts, and their heads: the last one is the metric, or `last` where metrics differ."""

    heads: Line
    lines: list[Line]


def lines(views: Sequence[View]) -> Listing:
    """Returns a line for each run: its id, what tells it from the others, and how far it is."""
    names = labels(views)
    return _listing(_line(one, one.run.id if one.run else one.path, names, one.status + _reason(one)) for one in views)


def lines_below(views: Sequence[View]) -> tuple[Listing, list[str]]:
    """Returns a line for each run that lies in the folder that was looked at, and one for each folder of runs in it.

    Also returns a line for each of these runs that did not go to its end, which says why.
    """
    names = labels(views)
    found: list[Line] = []
    reasons: list[str] = []
    for name, group in groupby(views, lambda one: one.path.partition("/")[0]):
        inside = list(group)
        if [one.path for one in inside] == [name]:
            found.append(_line(inside[0], name, names, inside[0].status))
            reasons += [name + reason for reason in [_reason(inside[0])] if reason]
        else:
            found.append(_of_folder(name, inside))
    return _listing(found), reasons


def labels(views: Sequence[View]) -> dict[str, str]:
    """Returns, by a run's path, what tells it from the others: values of the keys in which they differ."""
    runs = RunSet([one.run for one in views if one.run])
    if not runs.runs:
        return {}
    groups, seeds = grouped(runs), "seed" in runs.varying
    of = {run.id: group.label for group in groups.groups for run in group.runs}
    return {
        one.path: of[one.run.id] + (f", seed={one.run.info.get('seed')}" if seeds else "") for one in views if one.run
    }


def states(views: Iterable[View]) -> str:
    """Says how many runs there are of each status."""
    return ", ".join(f"{number} {status}" for status, number in Counter(one.status for one in views).items())


def _listing(found: Iterable[Line]) -> Listing:
    """found: for each line, a text for each of _HEADS, a metric, and its last value."""
    rows = list(found)
    metrics = {row[-2] for row in rows} - {""}
    if len(metrics) == 1:
        return Listing((*_HEADS, metrics.pop()), [(*row[:-2], row[-1]) for row in rows])
    return Listing((*_HEADS, "last"), [(*row[:-2], " ".join(row[-2:]).strip()) for row in rows])


def _reason(one: View) -> str:
    """Returns why a run ended, to follow its status or its name; empty if it is under way or went to its end."""
    return f": {one.why}" if one.why and one.status != "running" else ""


def _line(one: View, name: str, names: dict[str, str], status: str) -> Line:
    time = "" if one.virtual_time is None else f"{one.virtual_time:.6g}"
    return name, names.get(one.path, ""), status, one.progress, time, *one.last


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
