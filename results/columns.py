"""The columns of tables: fields of a row's class, and Arrow fields that carry their description, unit and marks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())
_TYPES = {TEXT: "text", pa.int32(): "integer", pa.int64(): "integer", pa.float64(): "number"}

# The types of columns. Another one also goes into `_TYPES`; `_bytes` in writer.py hashes numbers as 64 bits.
Text = Annotated[str, TEXT]
Int = Annotated[int, pa.int32()]
Long = Annotated[int, pa.int64()]
Number = Annotated[float, pa.float64()]


class Column(NamedTuple):
    """A column of a table, as documentation shows it."""

    name: str
    type: str
    """text, integer or number."""
    unit: str | None
    """Such as bytes; None for texts, ids, counts and plain numbers."""
    description: str
    nullable: bool
    """Whether a row may hold null here; the description says when."""
    wall: bool
    """Whether it is marked so, see `Mark`."""
    estimated: bool
    """Whether it is marked so."""


Mark = Literal["wall", "sparse", "logged", "estimated", "derived"]
"""What a column may be marked as.

wall: it holds wall-clock times or says which worker did something, and so differs between two runs of one scenario.
sparse: it holds only null in most runs. estimated: it holds estimates, such as of operations by torch's formulas.
derived: it describes what transforms of `uplink` or `downlink` did, so that a run with some that change nothing has the
digest of one without. Columns of wall, estimated and derived are not part of a run's digest, and sparse ones are not
where they hold only null.
logged: it is filled, like an algorithm's own, with what a task was given to log under its name.
"""


def column(description: str, *marks: Mark, unit: str | None = None) -> Any:
    """Declares a field of a row's class: a column that each row must fill."""
    return field(metadata=_metadata(description, unit, marks))


def optional(description: str, *marks: Mark, unit: str | None = None) -> Any:
    """Declares a column that is null where a row leaves it out."""
    return field(default=None, metadata=_metadata(description, unit, marks))


def _metadata(description: str, unit: str | None, marks: Iterable[Mark]) -> dict[str, str]:
    return {"description": description} | ({"unit": unit} if unit else {}) | dict.fromkeys(marks, "true")


def schema(row: type) -> pa.Schema:
    """Returns the schema of the table whose rows have this class, a dataclass; its docstring describes the table."""
    types = get_type_hints(row, include_extras=True)
    of_run = pa.field("run", TEXT, nullable=False, metadata={"description": "The run's id."})
    columns = [
        pa.field(of.name, _arrow(types[of.name]), nullable=of.default is None, metadata=dict(of.metadata))
        for of in fields(row)
    ]
    return pa.schema([of_run, *columns], metadata={"description": " ".join((row.__doc__ or "").split())})


def _arrow(type: Any) -> pa.DataType:
    """Returns the Arrow type of a field's type, which is one of those above, or one of them and None."""
    declared = type if get_origin(type) is Annotated else get_args(type)[0]
    arrow: pa.DataType = get_args(declared)[1]
    return arrow


def described(field: pa.Field[Any]) -> Column:
    """Returns what was declared of a column."""
    metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    return Column(
        name=field.name,
        type=_TYPES[field.type],
        unit=metadata.get("unit"),
        description=metadata["description"],
        nullable=field.nullable,
        wall=is_wall(field),
        estimated=is_marked(field, "estimated"),
    )


def is_wall(field: pa.Field[Any]) -> bool:
    """Whether a column differs between two runs of one scenario, see `Mark`."""
    return is_marked(field, "wall")


def is_marked(field: pa.Field[Any], mark: Mark) -> bool:
    """Whether a column has a mark."""
    return mark.encode() in (field.metadata or {})
