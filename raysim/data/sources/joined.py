"""Tables of several files as one, whose rows know where they are from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from raysim.parts.errors import BadValue

if TYPE_CHECKING:
    import pyarrow as pa


class Rows(NamedTuple):
    """The rows of some files, one after the other."""

    table: pa.Table
    files: Sequence[tuple[str, int]]  # each file, and how many rows it has
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Names the rows in errors: by their first file, whose columns are those of all."""
        more = len(self.files) - 1
        return repr(self.files[0][0]) + (f" (and {more} more)" if more else "")

    def place(self, row: int) -> str:
        """Says where a row is, for errors. Rows of a file count from 0."""
        for file, rows in self.files:
            if row < rows:
                return f"row {row} of {file!r}"
            row -= rows
        raise IndexError(row)


def joined(key: str, files: Sequence[str], tables: Sequence[pa.Table]) -> Rows:
    """Joins tables with the same columns, in any order. Whole numbers in one file and others in another are numbers.

    key: the key of the files, for errors. Raises ValueError that names the column and both files where they differ.
    """
    import pyarrow as pa

    first = tables[0]
    lengths = [(file, table.num_rows) for file, table in zip(files, tables, strict=True)]
    if len(tables) == 1:
        return Rows(first, lengths)
    for file, table in zip(files, tables, strict=True):
        if sorted(table.column_names) != sorted(first.column_names):
            only = sorted(set(first.column_names) ^ set(table.column_names)) or ["twice"]
            has, lacks = (file, files[0]) if only[0] in table.column_names else (files[0], file)
            text = f"got {only[0]!r} in {has!r} and not in {lacks!r}; make them alike, or name fewer files"
            raise BadValue(f"must match files with the same columns, {text}", key)
        for name in first.column_names:
            if _unlike(first.schema.field(name), table.schema.field(name)):
                found = f"{_kind(first, name)} in {files[0]!r} and {_kind(table, name)} in {file!r}"
                must = f"must match files with the same types of columns, got {name!r} as {found}"
                raise BadValue(f"{must}; make them alike, or name fewer files", key)
    names = first.column_names
    ordered = [table if table.column_names == names else table.select(names) for table in tables]
    return Rows(pa.concat_tables(ordered, promote_options="permissive"), lengths)


def _unlike(one: pa.Field, other: pa.Field) -> bool:
    """Whether no type holds the values of both."""
    import pyarrow as pa

    try:
        pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return True
    return False


def _kind(table: pa.Table, name: str) -> str:
    """Returns the type of a column; of texts, with one that is no number, for it may be why they are texts."""
    import pyarrow.types as types

    column = table[name]
    if not types.is_string(column.type):
        return str(column.type)
    row = next((row for row, text in enumerate(column.to_pylist()) if text is not None and not is_number(text)), None)
    return "string" if row is None else f"string, such as {column[row].as_py()!r} in row {row},"


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
