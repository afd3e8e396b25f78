"""The columns of the list of runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.filesize import decimal

from results.glance import Glance
from results.groups import tells
from results.keys import Value, varying
from results.metrics import directions
from results.serve.asked import STATUS
from results.serve.seen import Seen
from results.texts import short_names

FIRST = ("run", STATUS)  # columns that are always there
_KEYS, _METRICS = 12, 6  # columns of keys and of metrics, at most


class ListColumn(NamedTuple):
    """A column: its name in a query, its head, a run's value in it, and how numbers are written."""

    name: str
    head: str
    of: Callable[[Seen], Value]
    write: Callable[[float], str] | None = None  # None: it holds texts


def differing(runs: Sequence[Seen]) -> list[str]:
    """Returns the keys of which runs have several values: first those on which their numbers may depend. The name is
    left out, for paths say as much; so are keys that some runs lack and the others have with one value."""
    values: dict[str, set[str]] = {}
    for seen in runs:
        for key, value in seen.keys.items():
            values.setdefault(key, set()).add(repr(value))
    varied = [key for key in varying([seen.keys for seen in runs if seen.keys]) if len(values[key]) > 1]
    return sorted((key for key in varied if key != "name"), key=lambda key: (not tells(key), key != "seed"))


def columns_of(shown: Sequence[Seen], best: bool) -> list[ListColumn]:
    """Returns the columns of runs: keys that differ, how far the runs are, metrics, and costs.

    best: whether metrics are shown by their best values, where it is known which these are, or by their last ones.
    """
    keys = differing(shown)[:_KEYS]
    short = short_names(keys)
    larger = directions(*(seen.run.info for seen in shown if seen.run)) if best else {}
    metrics = Counter(curve.label for seen in shown if seen.glance for curve in seen.glance.curves)
    order = [label for label, _ in metrics.most_common(_METRICS)]  # of equally many, in order of appearance
    return [
        ListColumn("run", "run", lambda seen: seen.path),
        ListColumn(STATUS, STATUS, lambda seen: seen.standing),
        *(ListColumn(key, short[key], _of_key(key)) for key in keys),
        ListColumn("round", "round", _at(lambda found: found.rounds), "{:.0f}".format),
        ListColumn("t", "virtual time", _at(lambda found: found.virtual_time), "{:.6g}".format),
        *(ListColumn(label, label, _of_metric(label, larger), "{:.4g}".format) for label in order),
        ListColumn("sent", "sent", _at(lambda found: found.sent), lambda sum: decimal(round(sum))),
        ListColumn("seconds", "real time", _at(lambda found: found.wall_s), "{:,.1f} s".format),
    ]


def _of_key(key: str) -> Callable[[Seen], Value]:
    return lambda seen: seen.keys.get(key)


def _at(read: Callable[[Glance], Value]) -> Callable[[Seen], Value]:
    return lambda seen: read(seen.glance) if seen.glance else None


def _of_metric(label: str, larger: Mapping[str, bool]) -> Callable[[Seen], Value]:
    """Returns how a metric's best value is found where it is known which of two is better, or else its last one."""

    def read(found: Glance) -> Value:
        curve = next((curve for curve in found.curves if curve.label == label), None)
        if curve is None or curve.metric not in larger:
            return curve and curve.values[-1]
        numbers = [value for value in curve.values if not math.isnan(value)]
        return (max if larger[curve.metric] else min)(numbers, default=math.nan)

    return _at(read)
