"""The list of runs as a table: its columns, its groups, and the order of both."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from rich.filesize import decimal

from results.counted import beyond, key_axes, members, once_a_seed, tells
from results.groups import labels
from results.keys import Value, varying
from results.listing import states
from results.metrics import directions
from results.run_set import RunSet
from results.serve.asked import ALONE, BY_SEED, STATUS, Asked, value_of
from results.texts import precision, short_names, spread
from results.views import View

T = TypeVar("T")

_FIRST = ("run", STATUS)  # columns that are always there
_KEYS, _METRICS = 12, 6  # columns of keys and of metrics, at most
_CHOICES = 50  # values of a key that can be chosen from, at most


class ListColumn(NamedTuple):
    """A column: its name in a query, its head, a run's value in it, and how numbers are written."""

    name: str
    head: str
    of: Callable[[View], Value]
    write: Callable[[float], str] | None = None  # None: it holds texts

    def text(self, one: View) -> str:
        """Returns a run's cell."""
        if self.write is None:
            return value_of(one, self.name)
        return self.write(float(value)) if isinstance(value := self.of(one), int | float) else ""

    def numbers(self, views: Sequence[View]) -> list[float]:
        return [value for one in views if isinstance(value := self.of(one), int | float)]

    def mean(self, views: Sequence[View]) -> Value:
        """Returns the mean of numbers, or the first value of others."""
        numbers = self.numbers(views)
        return float(np.mean(numbers)) if numbers else next(map(self.of, views), None)


class ListGroup(NamedTuple):
    """Runs with the same values of some keys."""

    label: str  # empty if there are no groups
    views: list[View]
    counted: list[View]  # one for each seed
    also: str = ""  # the other keys in which they differ, beside their seeds: then there is no mean, but a range

    @property
    def states(self) -> str:
        return states(self.views)

    def text(self, column: ListColumn) -> str:
        """Returns the group's cell: the value of all; or the mean of numbers with the standard deviation, and their
        range where the runs differ in more than their seed."""
        if column.write is None:
            values = {value_of(one, column.name) for one in self.views}
            return values.pop() if len(values) == 1 else ""
        numbers = column.numbers(self.counted)
        if not numbers:
            return ""
        mean = float(np.mean(numbers))
        if len(set(numbers)) == 1 or (column.name in ("sent", "seconds") and not self.also):
            return column.write(mean)
        if self.also:
            return f"{column.write(min(numbers))} to {column.write(max(numbers))}"
        std = float(np.std(numbers, ddof=1))
        return spread(mean, std, precision(mean, std))


class Board(NamedTuple):
    """The table, and what can be asked of it."""

    columns: list[ListColumn]
    groups: list[ListGroup]  # with their runs in order
    states: str  # how many of the shown runs there are of each status
    shown: int
    choices: dict[str, list[str]]  # by key that differs between all runs, the values that can be asked for
    others: list[str]  # the keys that are the same in all runs


def board(every: Sequence[View], asked: Asked) -> Board:
    """Makes the table of the runs that are asked for."""
    views = [one for one in every if asked.takes(one)]
    differ, columns = _differing(every), _columns(views, asked.best)
    name, falling = asked.sort.removeprefix("-"), asked.sort.startswith("-")
    by = next((column for column in columns if column.name == name), columns[0])
    groups = [group._replace(views=_sorted(group.views, by.of, falling)) for group in _groups(views, asked.group)]
    if asked.group != ALONE:
        groups = _sorted(groups, lambda group: by.mean(group.counted), falling)
    choices = {key: sorted({value_of(one, key) for one in every}, key=_natural) for key in (STATUS, *differ)}
    return Board(
        columns,
        groups,
        states(views),
        len(views),
        {key: values for key, values in choices.items() if len(values) <= _CHOICES},
        [key for key in dict.fromkeys(key for one in every for key in one.keys) if key not in differ],
    )


def _differing(views: Sequence[View]) -> list[str]:
    """Returns the keys of which runs have several values: first those on which their numbers may depend. The name is
    left out, for paths say as much; so are keys that some runs lack and the others have with one value."""
    values: dict[str, set[str]] = {}
    for one in views:
        for key, value in one.keys.items():
            values.setdefault(key, set()).add(repr(value))
    varied = [key for key in varying([one.keys for one in views if one.keys]) if len(values[key]) > 1]
    return sorted((key for key in varied if key != "name"), key=lambda key: (not tells(key), key != "seed"))


def _columns(views: Sequence[View], best: bool) -> list[ListColumn]:
    """Returns the columns of runs: keys that differ, how far the runs are, metrics, and costs.

    best: whether metrics are shown by their best values, where it is known which these are, or by their last ones.
    """
    keys = _differing(views)[:_KEYS]
    short = short_names(keys)
    larger = directions(*(one.run.info for one in views if one.run)) if best else {}
    metrics = Counter(curve.label for one in views for curve in one.curves)
    order = [label for label, _ in metrics.most_common(_METRICS)]  # of equally many, in order of appearance
    return [
        ListColumn("run", "run", lambda one: one.path),
        ListColumn(STATUS, STATUS, lambda one: one.status),
        *(ListColumn(key, short[key], lambda one, key=key: one.keys.get(key)) for key in keys),  # type: ignore[misc]
        ListColumn("round", "round", lambda one: one.rounds, "{:.0f}".format),
        ListColumn("t", "virtual time", lambda one: one.virtual_time, "{:.6g}".format),
        *(ListColumn(label, label, _of_metric(label, larger), "{:.4g}".format) for label in order),
        ListColumn("sent", "sent", lambda one: one.sent, lambda sum: decimal(round(sum))),
        ListColumn("seconds", "real time", lambda one: one.wall_s, "{:,.1f} s".format),
    ]


def _of_metric(label: str, larger: Mapping[str, bool]) -> Callable[[View], Value]:
    """Returns how a metric's best value is found where it is known which of two is better, or else its last one."""

    def read(one: View) -> Value:
        curve = next((curve for curve in one.curves if curve.label == label), None)
        if curve is None or curve.metric not in larger:
            return curve and curve.values[-1]
        numbers = [value for value in curve.values if not math.isnan(value)]
        return (max if larger[curve.metric] else min)(numbers, default=math.nan)

    return read


def _groups(views: list[View], by: str) -> Iterator[ListGroup]:
    """Yields the groups that are asked for; runs whose run.json cannot be read are one of their own."""
    of_run = {one.run: one for one in views if one.run}
    if by == ALONE or not of_run:
        yield ListGroup("", views, views)
        return
    runs = RunSet(list(of_run))
    keys = key_axes(runs, None, ())[0] if by == BY_SEED else [key for key in [by] if key in runs.known]
    groups = members(runs, keys)
    named = labels(keys, list(groups), [group.scenarios[0] for group in groups.values()])
    for label, group in zip(named, groups.values(), strict=True):
        also = beyond(group, keys)
        counted = group.runs if also else once_a_seed(group)[0]
        every, once = ([of_run[run] for run in some] for some in (group.runs, counted))
        yield ListGroup(label or "all", every, once, ", ".join(also))
    if damaged := [one for one in views if not one.run]:
        yield ListGroup("cannot be read", damaged, damaged)


def _sorted(items: Sequence[T], of: Callable[[T], Value], falling: bool) -> list[T]:
    """Returns items by their values: numbers before texts, and those without a value, or with NaN, last."""
    pairs = [(of(item), item) for item in items]
    missing = [pair for pair in pairs if pair[0] is None or pair[0] != pair[0]]  # NaN is not itself
    known = [pair for pair in pairs if pair[0] is not None and pair[0] == pair[0]]
    known.sort(key=lambda pair: _natural(pair[0]), reverse=falling)
    return [item for _, item in (*known, *missing)]


def _natural(value: Value) -> tuple[bool, float, str]:
    """Returns a key for sorting: numbers, also those in texts, by their size, before texts."""
    try:
        return False, float(value or 0), ""
    except ValueError:
        return True, 0.0, str(value)
