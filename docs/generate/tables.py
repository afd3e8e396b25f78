"""Reference of the tables that a run leaves: what a row is, and every column."""

from __future__ import annotations

import pyarrow as pa
from generate.words import cell, plain

from results import TABLES, is_wall

HEADER = "| Column | Type | Unit | Meaning |\n|---|---|---|---|"


def tables() -> str:
    """A section for each table."""
    return "\n\n".join(_section(name, schema) for name, schema in TABLES.items())


def _section(name: str, schema: pa.Schema) -> str:
    rows = "\n".join([HEADER, *(_row(column) for column in schema)])
    return f"## `{name}` {{ #table-{name} }}\n\n{_about(schema)}\n\n{rows}"


def _row(column: pa.Field) -> str:
    kind = "text" if pa.types.is_dictionary(column.type) else str(column.type)
    kind += ", or null" if column.nullable else ""
    unit = column.metadata.get(b"unit", b"").decode()
    meaning = _about(column) + (" *Differs between two runs of one scenario.*" if is_wall(column) else "")
    return "| " + " | ".join(map(cell, [f"`{column.name}`", kind, unit, meaning])) + " |"


def _about(described: pa.Schema | pa.Field) -> str:
    """The description, as a sentence. KeyError where there is none."""
    text = plain(described.metadata[b"description"].decode())
    return text[:1].upper() + text[1:].removesuffix(".") + "."
