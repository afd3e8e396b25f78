"""Lists of runs, with a line for each run, or for each folder of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from results.glance import Glance, glances
from results.groups import grouped
from results.reader import Run
from results.run_set import RunSet
from results.texts import count

Line = tuple[str, ...]
_HEADS = ("run", "what", "status", "rounds", "t")


class Listing(NamedTuple):
    """Lines of texts, and their heads: the last one is the metric, or `last` where metrics differ."""

    heads: Line
    lines: list[Line]

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Listing:
        """lines: a text for each of _HEADS, a metric, and its last value."""
        metrics = {line[-2] for line in lines} - {""}
        if len(metrics) == 1:
            return cls((*_HEADS, metrics.pop()), [(*line[:-2], line[-1]) for line in lines])
        return cls((*_HEADS, "last"), [(*line[:-2], " ".join(line[-2:]).strip()) for line in lines])


def lines(runs: RunSet) -> Listing:
    """Returns a line for each run: its id, what tells it from the others, and how far it is."""
    names = labels(runs)
    return Listing.of([_line(found, found.run.id, names[found.run.id], _why(found)) for found in glances(runs.runs)])


def lines_below(folder: Path, runs: RunSet, damaged: list[str], reasons: list[str]) -> Listing:
    """Returns a line for each run that lies in a folder, and one for each folder of runs in it.

    Runs with damaged files are left out. damaged: gets a line for each of them. reasons: gets a line for each run that
    lies in the folder and did not go to its end.
    """
    names = labels(runs)
    below: dict[str, list[Run]] = {}
    for run in runs.runs:
        first = next(iter(run.folder.relative_to(folder).parts), ".")
        below.setdefault(first, []).append(run)
    found: list[Line] = []
    for name, inside in below.items():
        seen = glances(inside, damaged)
        if len(inside) == 1 and inside[0].folder == folder / name:
            found += [_line(one, name, names[one.run.id]) for one in seen]
            reasons += [name + why for one in seen if (why := _why(one))]
        elif seen:
            found.append(_of_folder(name, seen))
    return Listing.of(found)


def labels(runs: RunSet) -> dict[str, str]:
    """Returns, by a run's id, what tells it from the others: values of the keys in which they differ."""
    groups = grouped(runs)
    seeds = "seed" in runs.varying
    label = {run.id: group.label for group in groups.groups for run in group.runs}
    return {run.id: f"{label[run.id]}, seed={run.info.get('seed')}" if seeds else label[run.id] for run in runs.runs}


def _why(found: Glance) -> str:
    """Returns why a run ended, to follow its status or its name; empty if it is under way or went to its end."""
    return f": {found.why}" if found.why and found.standing != "running" else ""


def _line(found: Glance, name: str, label: str, why: str = "") -> Line:
    last = (found.curves[0].label, f"{found.curves[0].values[-1]:.4g}") if found.curves else ("", "")
    return name, label, found.standing + why, found.progress, f"{found.virtual_time:.6g}", *last


def _of_folder(name: str, found: Sequence[Glance]) -> Line:
    """Returns the line of a folder, such as that of a sweep."""
    states = Counter(one.standing for one in found)
    status = ", ".join(f"{number} {state}" for state, number in states.items())
    rounds, times = ([getattr(one, key) for one in found] for key in ("rounds", "virtual_time"))
    ends = [(one.curves[0].label, one.curves[0].values[-1]) for one in found if one.curves]
    alike = len({label for label, _ in ends}) == 1
    last = (ends[0][0], _range([value for _, value in ends], ".4g")) if alike else ("", "")
    return f"{name}/", count(len(found), "run"), status, _range(rounds, "d"), _range(times, ".6g"), *last


def _range(values: Sequence[float], form: str) -> str:
    low, high = (f"{end:{form}}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
