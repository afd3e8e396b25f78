"""Reference of the tables that a run leaves: what a row is, and every column."""

from __future__ import annotations

import re

import pyarrow as pa
from generate.words import cell, plain

from results import TABLES, is_wall

HEADER = "| Column | Type | Unit | Meaning |\n|---|---|---|---|"
_UNITS = {r".*_bytes|bytes": "bytes", r".*flops": "FLOP", r".*_s|seconds": "s", r"samples.*": "samples"}
_UNITS[r"virtual_time|.*_at"] = "virtual time"


def tables() -> str:
    """A section for each table."""
    return "\n\n".join(_section(name, schema) for name, schema in TABLES.items())


def _section(name: str, schema: pa.Schema) -> str:
    rows = [f"## `{name}` {{ #table-{name} }}", f"A row is {plain(_about(schema))}.", HEADER]
    return "\n\n".join(rows[:2]) + "\n\n" + "\n".join([rows[2], *(_row(column) for column in schema)])


def _row(column: pa.Field) -> str:
    kind = "text" if pa.types.is_dictionary(column.type) else str(column.type)
    kind += ", or null" if column.nullable else ""
    unit = next((unit for pattern, unit in _UNITS.items() if re.fullmatch(pattern, column.name)), "")
    wall = ". *Differs between two runs of one scenario.*" if is_wall(column) else ""
    return "| " + " | ".join(map(cell, [f"`{column.name}`", kind, unit, plain(_about(column)) + wall])) + " |"


def _about(described: pa.Schema | pa.Field) -> str:
    return described.metadata[b"description"].decode()
