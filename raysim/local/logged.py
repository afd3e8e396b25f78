"""Numbers that an algorithm leaves in tables."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

from torch import Tensor

from raysim.parts.errors import BadValue

Numbers = dict[str, float | None]


class Logged(NamedTuple):
    """What tasks were given to log, which is added to these dictionaries."""

    columns: Numbers  # for columns of the table that tasks fill, such as `penalty`
    own: Numbers  # for custom columns of the algorithm

    def log(self, table: str, name: str, value: object) -> None:
        """Adds a number. Raises TypeError for anything else, and ValueError for a name that the table has already."""
        (self.columns if is_filled_by_tasks(table, name) else self.own)[name] = _number(name, value)

    def take(self) -> Logged:
        """Returns what was logged since the last call."""
        taken = Logged(dict(self.columns), dict(self.own))
        self.columns.clear()
        self.own.clear()
        return taken


def is_filled_by_tasks(table: str, name: str) -> bool:
    """Whether a table has a column of this name that tasks fill. Raises ValueError if it has one that they do not."""
    from results.columns import is_marked
    from results.schemas import TABLES  # loads pyarrow, which most algorithms do not need in a worker

    columns = TABLES[table]
    if name in columns.names and not is_marked(columns.field(name), "logged"):
        raise BadValue(f"task.log: must name columns that the table {table} does not have, got {name!r}; rename it")
    return name in columns.names


def _number(name: str, value: object) -> float | None:
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        return float(value)
    if value is None:
        return None
    if not isinstance(value, Real):
        got = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
        raise TypeError(f"task.log: {name} must be one number, or None, got {got}")
    return float(value)
