"""The list of runs as a table: its columns, its groups, and the order of both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from results.compare import tells
from results.groups import labels
from results.keys import Value
from results.serve.asked import ALONE, STATUS, Asked, told
from results.serve.columns import FIRST, ListColumn, columns_of, differing
from results.serve.seen import Seen
from results.texts import precision, spread

T = TypeVar("T")

_CHOICES = 50  # values of a key that can be chosen from, at most


class ListRow(NamedTuple):
    """A run, with a text for each column after the first two."""

    seen: Seen
    cells: list[str]


@dataclass(frozen=True)
class ListGroup:
    """Runs with the same values of some keys. label: empty if there are no groups."""

    label: str
    states: str
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
    differ, columns = differing(every), columns_of(shown, asked.best)
    name, falling = asked.sort.removeprefix("-"), asked.sort.startswith("-")
    by = next((column for column in columns if column.name == name), columns[0])
    groups = [_group(label, _sorted(members, by.of, falling), columns) for label, members in _grouped(shown, asked)]
    if asked.group != ALONE:
        means = {id(group): _mean(by, [line.seen for line in group.lines]) for group in groups}
        groups = _sorted(groups, lambda group: means[id(group)], falling)
    choices = {key: sorted({told(seen, key) for seen in every}, key=_natural) for key in (STATUS, *differ)}
    return Board(
        columns,
        groups,
        _states(shown),
        {key: values for key, values in choices.items() if len(values) <= _CHOICES},
        [key for key in dict.fromkeys(key for seen in every for key in seen.keys) if key not in differ],
    )


def _grouped(shown: Sequence[Seen], asked: Asked) -> list[tuple[str, list[Seen]]]:
    """Returns the members of each group with its label; damaged runs are a group of their own."""
    if asked.group == ALONE:
        return [("", list(shown))]
    whole = [seen for seen in shown if seen.keys]
    keys = asked.by or [key for key in differing(whole) if tells(key)]
    members: dict[tuple[Value, ...], list[Seen]] = {}
    for seen in whole:
        members.setdefault(tuple(seen.keys.get(key) for key in keys), []).append(seen)
    named = labels(keys, list(members), [of_group[0].keys for of_group in members.values()])
    found = [(label or "all", of_group) for label, of_group in zip(named, members.values(), strict=True)]
    damaged = [seen for seen in shown if not seen.keys]
    return [*found, ("cannot be read", damaged)] if damaged else found


def _group(label: str, members: list[Seen], columns: Sequence[ListColumn]) -> ListGroup:
    rest = columns[len(FIRST) :]
    lines = [ListRow(seen, [_text(column, column.of(seen), seen) for column in rest]) for seen in members]
    return ListGroup(label, _states(members), [_of_group(column, members) for column in rest], lines)


def _text(column: ListColumn, value: Value, seen: Seen) -> str:
    if column.write is None:
        return told(seen, column.name)
    return column.write(float(value)) if isinstance(value, int | float) else ""


def _of_group(column: ListColumn, members: Sequence[Seen]) -> str:
    """Returns what a group has in a column: the value of all, or the mean of numbers with the standard deviation."""
    if column.write is None:
        values = {told(seen, column.name) for seen in members}
        return values.pop() if len(values) == 1 else ""
    numbers = _numbers(column, members)
    if not numbers:
        return ""
    mean = float(np.mean(numbers))
    if len(set(numbers)) == 1 or column.name in ("sent", "seconds"):
        return column.write(mean)
    std = float(np.std(numbers, ddof=1))
    return spread(mean, std, precision(mean, std))


def _numbers(column: ListColumn, members: Sequence[Seen]) -> list[float]:
    return [value for seen in members if isinstance(value := column.of(seen), int | float)]


def _mean(column: ListColumn, members: Sequence[Seen]) -> Value:
    numbers = _numbers(column, members)
    return float(np.mean(numbers)) if numbers else column.of(members[0])


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
