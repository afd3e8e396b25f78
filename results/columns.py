"""The columns of tables: Arrow fields that carry their own description, unit and kind as metadata."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())
_TYPES = {TEXT: "text", pa.int32(): "integer", pa.int64(): "integer", pa.float64(): "number"}


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


def column(
    name: str,
    type: pa.DataType,
    description: str,
    *,
    unit: str | None = None,
    null: bool = False,
    wall: bool = False,
    sparse: bool = False,
) -> pa.Field[Any]:
    """Declares a column of a table."""
    marks = {"unit": unit, "wall": "true" if wall else None, "sparse": "true" if sparse else None}
    metadata = {"description": description} | {name: value for name, value in marks.items() if value}
    return pa.field(name, type, nullable=null, metadata=metadata)


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
    )


def is_wall(field: pa.Field[Any]) -> bool:
    """Whether a column holds wall-clock times or says which worker did something.

    Such a column differs between two runs of one scenario, so it is not part of a run's digest.
    """
    return b"wall" in (field.metadata or {})


def is_sparse(field: pa.Field[Any]) -> bool:
    """Whether a column holds only null in most runs. Where it does, it is not part of a run's digest."""
    return b"sparse" in (field.metadata or {})
