"""The list of runs as a table: its columns, its groups, and the order of both."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from rich.filesize import decimal

from results.glance import Glance
from results.groups import beyond, key_axes, labels, members, once_a_seed, tells
from results.keys import Value, varying
from results.metrics import directions
from results.run_set import RunSet
from results.serve.asked import ALONE, STATUS, Asked, told
from results.serve.seen import Seen
from results.texts import precision, short_names, spread

T = TypeVar("T")

_FIRST = ("run", STATUS)  # columns that are always there
_KEYS, _METRICS = 12, 6  # columns of keys and of metrics, at most
_CHOICES = 50  # values of a key that can be chosen from, at most


class ListColumn(NamedTuple):
    """A column: its name in a query, its head, a run's value in it, and how numbers are written."""

    name: str
    head: str
    of: Callable[[Seen], Value]
    write: Callable[[float], str] | None = None  # None: it holds texts


def _differing(runs: Sequence[Seen]) -> list[str]:
    """Returns the keys of which runs have several values: first those on which their numbers may depend. The name is
    left out, for paths say as much; so are keys that some runs lack and the others have with one value."""
    values: dict[str, set[str]] = {}
    for seen in runs:
        for key, value in seen.keys.items():
            values.setdefault(key, set()).add(repr(value))
    varied = [key for key in varying([seen.keys for seen in runs if seen.keys]) if len(values[key]) > 1]
    return sorted((key for key in varied if key != "name"), key=lambda key: (not tells(key), key != "seed"))


def _columns_of(shown: Sequence[Seen], best: bool) -> list[ListColumn]:
    """Returns the columns of runs: keys that differ, how far the runs are, metrics, and costs.

    best: whether metrics are shown by their best values, where it is known which these are, or by their last ones.
    """
    keys = _differing(shown)[:_KEYS]
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


class ListRow(NamedTuple):
    """A run, with a text for each column after the first two."""

    seen: Seen
    cells: list[str]


@dataclass(frozen=True)
class ListGroup:
    """Runs with the same values of some keys."""

    label: str
    """Empty if there are no groups."""
    states: str
    also: str
    """The other keys in which they differ, beside their seeds: then there is no mean, but a range."""
    cells: list[str]
    lines: list[ListRow]


@dataclass(frozen=True)
class Board:
    """The table, and what can be asked of it."""

    columns: list[ListColumn]
    groups: list[ListGroup]
    states: str
    """How many runs there are of each status, of those that are shown."""
    choices: dict[str, list[str]]
    """By key, the values that can be asked for: of the status, and of keys that differ between all runs."""
    others: list[str]
    """The keys that are the same in all runs."""

    @property
    def shown(self) -> int:
        return sum(len(group.lines) for group in self.groups)


def board(every: Sequence[Seen], asked: Asked) -> Board:
    """Makes the table of the runs that are asked for."""
    shown = [seen for seen in every if asked.takes(seen)]
    differ, columns = _differing(every), _columns_of(shown, asked.best)
    name, falling = asked.sort.removeprefix("-"), asked.sort.startswith("-")
    by = next((column for column in columns if column.name == name), columns[0])
    found = _grouped(shown, asked)
    if asked.group != ALONE:
        found = _sorted(found, lambda group: _mean(by, group.counted), falling)
    groups = [_group(group, _sorted(group.members, by.of, falling), columns) for group in found]
    choices = {key: sorted({told(seen, key) for seen in every}, key=_natural) for key in (STATUS, *differ)}
    return Board(
        columns,
        groups,
        _states(shown),
        {key: values for key, values in choices.items() if len(values) <= _CHOICES},
        [key for key in dict.fromkeys(key for seen in every for key in seen.keys) if key not in differ],
    )


class _Members(NamedTuple):
    """The runs of a group. counted: one for each seed. also: the other keys in which they differ."""

    label: str
    members: list[Seen]
    counted: list[Seen]
    also: list[str]


def _grouped(shown: Sequence[Seen], asked: Asked) -> list[_Members]:
    """Returns the groups that are asked for; damaged runs are one of their own."""
    whole = {seen.run: seen for seen in shown if seen.run}
    if asked.group == ALONE or not whole:
        return [_Members("", list(shown), list(shown), [])]
    runs = RunSet(list(whole))
    keys = key_axes(runs, None, ())[0] if asked.by is None else [key for key in asked.by if key in runs.known]
    groups = members(runs, keys)
    named = labels(keys, list(groups), [group.scenarios[0] for group in groups.values()])
    found = []
    for label, group in zip(named, groups.values(), strict=True):
        also = beyond(group, keys)
        counted = group.runs if also else once_a_seed(group)[0]
        every, of_seeds = ([whole[run] for run in of] for of in (group.runs, counted))
        found.append(_Members(label or "all", every, of_seeds, also))
    damaged = [seen for seen in shown if not seen.run]
    return [*found, _Members("cannot be read", damaged, damaged, [])] if damaged else found


def _group(group: _Members, ordered: list[Seen], columns: Sequence[ListColumn]) -> ListGroup:
    rest = columns[len(_FIRST) :]
    lines = [ListRow(seen, [_text(column, column.of(seen), seen) for column in rest]) for seen in ordered]
    also, cells = ", ".join(group.also), [_of_group(column, group) for column in rest]
    return ListGroup(group.label, _states(group.members), also, cells, lines)


def _text(column: ListColumn, value: Value, seen: Seen) -> str:
    if column.write is None:
        return told(seen, column.name)
    return column.write(float(value)) if isinstance(value, int | float) else ""


def _of_group(column: ListColumn, group: _Members) -> str:
    """Returns what a group has in a column: the value of all; or the mean of numbers with the standard deviation, and
    their range where the runs differ in more than their seed."""
    if column.write is None:
        values = {told(seen, column.name) for seen in group.members}
        return values.pop() if len(values) == 1 else ""
    numbers = _numbers(column, group.counted)
    if not numbers:
        return ""
    mean = float(np.mean(numbers))
    if len(set(numbers)) == 1:
        return column.write(mean)
    if group.also:
        return f"{column.write(min(numbers))} to {column.write(max(numbers))}"
    if column.name in ("sent", "seconds"):
        return column.write(mean)
    std = float(np.std(numbers, ddof=1))
    return spread(mean, std, precision(mean, std))


def _numbers(column: ListColumn, members: Sequence[Seen]) -> list[float]:
    return [value for seen in members if isinstance(value := column.of(seen), int | float)]


def _mean(column: ListColumn, members: Sequence[Seen]) -> Value:
    numbers = _numbers(column, members)
    return float(np.mean(numbers)) if numbers else next(map(column.of, members), None)


def _sorted(items: Sequence[T], of: Callable[[T], Value], falling: bool) -> list[T]:
    """Returns items by their values: numbers before texts, and those without a value, or with NaN, last."""
    valued = sorted((item for item in items if not _missing(of(item))), key=lambda item: _natural(of(item)))
    return [*(valued[::-1] if falling else valued), *(item for item in items if _missing(of(item)))]


def _missing(value: Value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _natural(value: Value) -> tuple[bool, float, str]:
    """Returns a key for sorting: numbers, also those in texts, by their size, before texts."""
    try:
        return False, float(value or 0), ""
    except ValueError:
        return True, 0.0, str(value)


def _states(runs: Sequence[Seen]) -> str:
    return ", ".join(f"{number} {state}" for state, number in Counter(seen.standing for seen in runs).items())
