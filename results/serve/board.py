"""The list of runs as a table: which runs are asked for, its columns, and its order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.filesize import decimal

from results.counted import tells
from results.groups import text
from results.keys import Value, varying
from results.listing import states
from results.texts import short_names
from results.views import View

STATUS = "status"  # a name beside those of keys
_KEYS, _METRICS = 12, 6  # columns of keys and of metrics, at most


class Asked(NamedTuple):
    """What a reader asks of the list."""

    chosen: Sequence[str]  # paths of runs; none: all
    words: str  # texts that a run's path or status contains, or KEY=VALUE
    sort: str  # a column, after a minus sign for the largest first

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Asked:
        """Reads a query: pairs, in which a name may come several times."""
        every = list(pairs)
        single = dict(every)
        return cls([value for name, value in every if name == "run"], single.get("q", ""), single.get("sort", "run"))

    def takes(self, one: View) -> bool:
        """Whether a run is among those that are asked for."""
        return one.path in self.chosen if self.chosen else all(_has(one, word) for word in self.words.split())


def _has(one: View, word: str) -> bool:
    key, equals, value = word.partition("=")
    if not equals:
        return any(word.lower() in part.lower() for part in (one.path, one.status, str(one.keys.get("name"))))
    found = [of for name, of in one.keys.items() if name in (key, f"{key}.name") or name.endswith(f".{key}")]
    return (key == STATUS and one.status == value) or any(text(of) == value for of in found)


class ListColumn(NamedTuple):
    """A column: its name in a query, its head, a run's value in it, and how numbers are written."""

    name: str
    head: str
    of: Callable[[View], Value]
    write: Callable[[float], str] | None = None  # None: it holds texts

    def text(self, one: View) -> str:
        """Returns a run's cell."""
        value = self.of(one)
        if self.write is None:
            return "-" if value is None else text(value)
        return self.write(float(value)) if isinstance(value, int | float) else ""


class Board(NamedTuple):
    """The table."""

    columns: list[ListColumn]
    views: list[View]
    states: str  # how many runs there are of each status
    keys: list[str]  # those of all runs


def board(every: Sequence[View], asked: Asked) -> Board:
    """Makes the table of the runs that are asked for."""
    views = [one for one in every if asked.takes(one)]
    columns = _columns(views)
    name, falling = asked.sort.removeprefix("-"), asked.sort.startswith("-")
    of = next((column for column in columns if column.name == name), columns[0]).of
    pairs = [(of(one), one) for one in views]
    known = [pair for pair in pairs if pair[0] is not None and pair[0] == pair[0]]  # NaN is not itself
    known.sort(key=lambda pair: _natural(pair[0]), reverse=falling)
    missing = [one for value, one in pairs if value is None or value != value]
    keys = dict.fromkeys(key for one in every for key in one.keys)
    return Board(columns, [*(one for _, one in known), *missing], states(views), list(keys))


def _columns(views: Sequence[View]) -> list[ListColumn]:
    """Returns the columns of runs: keys that differ, how far the runs are, metrics, and costs.

    Keys on which numbers may depend come first. The name is left out, for paths say as much; so are keys that some runs
    lack and the others have with one value.
    """
    varied = varying([one.keys for one in views if one.keys])
    several = [key for key in varied if len({repr(one.keys[key]) for one in views if key in one.keys}) > 1]
    keys = sorted((key for key in several if key != "name"), key=lambda key: (not tells(key), key != "seed"))[:_KEYS]
    short = short_names(keys)
    metrics = Counter(curve.label for one in views for curve in one.curves)
    order = [label for label, _ in metrics.most_common(_METRICS)]  # of equally many, in order of appearance

    def key_of(key: str) -> Callable[[View], Value]:
        return lambda one: one.keys.get(key)

    def metric(label: str) -> Callable[[View], Value]:
        return lambda one: next((curve.values[-1] for curve in one.curves if curve.label == label), None)

    return [
        ListColumn("run", "run", lambda one: one.path),
        ListColumn(STATUS, STATUS, lambda one: one.status),
        *(ListColumn(key, short[key], key_of(key)) for key in keys),
        ListColumn("round", "round", lambda one: one.rounds, "{:.0f}".format),
        ListColumn("t", "virtual time", lambda one: one.virtual_time, "{:.6g}".format),
        *(ListColumn(label, label, metric(label), "{:.4g}".format) for label in order),
        ListColumn("sent", "sent", lambda one: one.sent, lambda sum: decimal(round(sum))),
        ListColumn("seconds", "real time", lambda one: one.wall_s, "{:,.1f} s".format),
    ]


def _natural(value: Value) -> tuple[bool, float, str]:
    """Returns a key for sorting: numbers, also those in texts, by their size, before texts."""
    try:
        return False, float(value or 0), ""
    except ValueError:
        return True, 0.0, str(value)
