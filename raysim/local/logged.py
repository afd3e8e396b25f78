"""Numbers that an algorithm leaves in columns of its own."""

from numbers import Real

from torch import Tensor

from raysim.parts.errors import BadValue


def require_own(table: str, name: str) -> None:
    """Raises ValueError if a table has a column of this name, and that is not one that tasks fill."""
    from results.columns import is_marked
    from results.schemas import TABLES  # loads pyarrow, which most algorithms do not need in a worker

    columns = TABLES[table]
    if name in columns.names and not is_marked(columns.field(name), "logged"):
        raise BadValue(f"task.log: must name columns that the table {table} does not have, got {name!r}; rename it")


def number(name: str, value: object) -> float | None:
    """Returns a value as a float; None as it is. Raises TypeError for any other value than one number."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        return float(value)
    if value is None:
        return None
    if not isinstance(value, Real):
        got = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
        raise TypeError(f"task.log: {name} must be one number, or None, got {got}")
    return float(value)
