"""Own columns: numbers that an algorithm adds to some tables, after the columns of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from results.schemas import TABLES
from results.store import in_arrow

OWN = ("steps", "updates", "coefficients")
"""The tables that may have own columns."""


def with_own(table: str, names: Iterable[str]) -> pa.Schema:
    """Returns the schema of a table with own columns of these names after the others."""
    described = {"description": "A column of the algorithm's own."}
    fields = [pa.field(name, pa.float64(), metadata=described) for name in names]
    return pa.schema([*TABLES[table], *fields], metadata=TABLES[table].metadata)


def own_names(table: str, found: pa.Schema) -> tuple[str, ...]:
    """Returns the names of the own columns in the schema of a file; unknown columns that are not numbers are left
    out."""
    known = set(TABLES[table].names)
    return tuple(c.name for c in found if table in OWN and c.name not in known and c.type == pa.float64())


def schema_of(table: str, files: Sequence[Path]) -> pa.Schema:
    """Returns the schema of a table's part files, in order of writing: later ones have all own columns of earlier."""
    if not files or table not in OWN:
        return with_own(table, ())
    return with_own(table, own_names(table, read_schema(files[-1])))


def read_schema(file: Path) -> pa.Schema:
    """Returns the schema of a part file."""
    name, system = in_arrow(file)
    return pq.read_schema(name, filesystem=system)
