"""The columns of tables: fields of a row's class, and Arrow fields that carry their description, unit and marks."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

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
    """Whether the column differs between two runs of one scenario; see `is_wall`."""
    sparse: bool = False
    """Whether the column holds only null in most runs; see `is_sparse`."""
    estimated: bool = False
    """Whether the column holds estimates; see `is_estimated`."""


def column(description: str, *, unit: str | None = None, wall: bool = False) -> Any:
    """Declares a field of a row's class: a column that each row must fill."""
    return field(metadata=_marks(description, unit=unit, wall=wall))


def optional(
    description: str,
    *,
    unit: str | None = None,
    wall: bool = False,
    sparse: bool = False,
    logged: bool = False,
    estimated: bool = False,
) -> Any:
    """Declares a column that is null where a row leaves it out.

    wall, sparse, logged, estimated: as `is_wall`, `is_sparse`, `is_logged` and `is_estimated` say.
    """
    marks = _marks(description, unit=unit, wall=wall, sparse=sparse, logged=logged, estimated=estimated)
    return field(default=None, metadata=marks)


def _marks(description: str, **marks: str | bool | None) -> dict[str, str]:
    return {"description": description} | {k: "true" if mark is True else mark for k, mark in marks.items() if mark}


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
        sparse=is_sparse(field),
        estimated=is_estimated(field),
    )


def is_wall(field: pa.Field[Any]) -> bool:
    """Whether a column holds wall-clock times or says which worker did something.

    Such a column differs between two runs of one scenario, so it is not part of a run's digest.
    """
    return b"wall" in (field.metadata or {})


def is_sparse(field: pa.Field[Any]) -> bool:
    """Whether a column holds only null in most runs. Where it does, it is not part of a run's digest."""
    return b"sparse" in (field.metadata or {})


def is_logged(field: pa.Field[Any]) -> bool:
    """Whether a column is filled, like an algorithm's own, with what a task was given to log under its name."""
    return b"logged" in (field.metadata or {})


def is_estimated(field: pa.Field[Any]) -> bool:
    """Whether a column holds estimates, such as of operations by torch's formulas. It is not part of a run's digest."""
    return b"estimated" in (field.metadata or {})
