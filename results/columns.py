"""The columns of tables: lines of a text, fields of a row's class, and Arrow fields with unit and marks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

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


# The words that `columns` reads. Another type also goes into `_TYPES`; `_bytes` in writer.py hashes numbers as 64 bits.
_ARROW = {"text": TEXT, "int": pa.int32(), "long": pa.int64(), "number": pa.float64()}
_UNITS = {
    "time": "rounds or seconds, as world.delay.unit says",
    "staleness": "rounds or server steps, as world.staleness says; virtual time between peers",
    "bytes": "bytes",
    "flops": "floating-point operations",
    "s": "s",
}
_METADATA = {word: {"unit": unit} for word, unit in _UNITS.items()} | {mark: {mark: "true"} for mark in get_args(Mark)}


# Rows are not frozen, because frozen ones take five times as long to make.
@dataclass(slots=True, kw_only=True)
class Row:
    """A row of a table, without the run's id, which the writer adds as column `run`."""

    if TYPE_CHECKING:  # the columns of its table

        def __init__(self, **columns: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...


OfTable = TypeVar("OfTable", bound=Row)


def columns(text: str) -> Callable[[type[OfTable]], type[OfTable]]:
    """Makes a class of rows a dataclass with a field for each column that a text describes.

    A column is `name type: description`. Its type is a word of `_ARROW`, with a question mark if it is null where a row
    leaves it out, then a word of `_UNITS` and marks, if it has them. Further lines of its description are indented.
    """

    def made(row: type[OfTable]) -> type[OfTable]:
        row.__annotations__ = {}
        for told in re.split(r"\n(?! )", dedent(text).strip()):
            head, _, description = told.partition(": ")
            name, type, *words = head.split()
            metadata = {"description": " ".join(description.split())}
            for word in words:
                metadata |= _METADATA[word]
            row.__annotations__[name] = _ARROW[type.rstrip("?")]
            default = None if type.endswith("?") else MISSING
            setattr(row, name, field(default=default, metadata=metadata))
        return dataclass(slots=True, kw_only=True)(row)

    return made


def schema(row: type[Row]) -> pa.Schema:
    """Returns the schema of the table whose rows have this class; its docstring describes the table."""
    made = [pa.field(of.name, of.type, nullable=of.default is None, metadata=dict(of.metadata)) for of in fields(row)]
    of_run = pa.field("run", TEXT, nullable=False, metadata={"description": "The run's id."})
    return pa.schema([of_run, *made], metadata={"description": " ".join((row.__doc__ or "").split())})


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
