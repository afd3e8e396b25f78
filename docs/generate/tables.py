"""Reference of the tables that a run leaves: what a row is, and every column."""

from __future__ import annotations

from generate.words import cell, plain

from results import TABLES
from results.columns import Column
from results.schemas import columns_of, description_of

HEADER = "| Column | Type | Unit | Meaning |\n|---|---|---|---|"


def tables() -> str:
    """A section for each table."""
    return "\n\n".join(_section(name) for name in TABLES)


def _section(name: str) -> str:
    rows = "\n".join([HEADER, *map(_row, columns_of(name))])
    return f"## `{name}` {{ #table-{name} }}\n\n{plain(description_of(name))}\n\n{rows}"


def _row(column: Column) -> str:
    kind = column.type + (", or null" if column.nullable else "")
    meaning = plain(column.description) + (" *Differs between two runs of one scenario.*" if column.wall else "")
    return "| " + " | ".join(map(cell, [f"`{column.name}`", kind, plain(column.unit or ""), meaning])) + " |"
