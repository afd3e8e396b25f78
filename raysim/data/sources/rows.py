"""Rows of files: CSV, Parquet and JSON lines as one table of Arrow, whose rows know where they are from.

`pyarrow.dataset` is not used: it takes the types of a CSV file from its first megabyte, and names neither the file nor
the line that does not fit.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from raysim.data.sources.reading import all_matching, reading
from raysim.parts.errors import BadValue
from results.location import in_arrow, is_local, local_copy, location, require_file

if TYPE_CHECKING:
    import pyarrow as pa

_BETWEEN = {",": '","', ";": '";"', "\t": '"\\t"', "|": '"|"'}  # what may be between cells, as YAML writes it


class Cells(NamedTuple):
    """How cells of CSV files are written. delimiter: between them; None: a comma, or a tab in .tsv files. decimal: the
    decimal point. texts: columns whose cells are texts as they stand, such as 0.50."""

    delimiter: str | None = None
    decimal: str = "."
    texts: Collection[str] = ()


PLAIN = Cells()


class Rows(NamedTuple):
    """The rows of some files, one after the other."""

    table: pa.Table
    files: Sequence[tuple[str, int]]  # each file, and how many rows it has
    unused: tuple[str, ...] = ()  # what is beside them

    @property
    def name(self) -> str:
        """Names the rows in errors: by their first file, whose columns are those of all."""
        more = len(self.files) - 1
        return repr(self.files[0][0]) + (f" (and {more} more)" if more else "")

    def with_places(self, names: Iterable[str]) -> Rows:
        """Returns the rows with a column `file` or `folder` beside the others, if it is among the names and not there:
        the name of the file that a row is in, without its suffixes, or that of its folder."""
        import pyarrow as pa

        table = self.table
        for name in {"file", "folder"}.intersection(names) - {*table.column_names}:
            files = [Path(file) for file, _ in self.files]
            found = [file.name.partition(".")[0] if name == "file" else file.absolute().parent.name for file in files]
            if name == "file" and len({*found}) < len(found):
                raise BadValue("must be files of different names, got one twice; take `clients: folder`", "path")
            cells = [value for value, (_, rows) in zip(found, self.files, strict=True) for _ in range(rows)]
            table = table.append_column(name, pa.array(cells))
        return self._replace(table=table)

    def place(self, row: int) -> str:
        """Says where a row is, for errors. Rows of a file count from 0."""
        for file, rows in self.files:
            if row < rows:
                return f"row {row} of {file!r}"
            row -= rows
        raise IndexError(row)


def read_files(
    key: str, patterns: tuple[str, ...], cells: Cells = PLAIN, columns: Sequence[str] = (), suffix: str = ""
) -> Rows:
    """Reads all files that match, with the same columns, the files of a pattern in order of their names.

    key: the key of the patterns, for errors. columns: those to read of Parquet files that have all of them; (): all.
    suffix: of the files' names, where they need not have one.
    """
    files = all_matching(key, patterns)
    rows = joined(key, files, [read_file(key, file, cells, columns, suffix) for file in files])
    if rows.table.num_rows == 0:
        raise BadValue(f"must match files with rows, got none in {files[0]!r}; correct the path", key)
    return rows


def read_file(key: str, file: str, cells: Cells = PLAIN, columns: Sequence[str] = (), suffix: str = "") -> pa.Table:
    """Reads one file, whose name says what it is."""
    name = (suffix or file).lower()
    what = next((what for what, (suffixes, _) in _FORMATS.items() if name.endswith(suffixes)), None)
    if what is None:
        folder = is_local(location(file)) and Path(file).expanduser().is_dir()
        cure = f"name its files, such as {str(Path(file) / '*.csv')!r}" if folder else "save it as one"
        raise BadValue(f"must be a .parquet, .csv, .tsv, .jsonl or .json file, got {file!r}; {cure}", key)
    with reading(file, what, "correct it, or write it again, in UTF-8"):
        return _FORMATS[what][1](file, cells, columns)


def _parquet(file: str, cells: Cells, columns: Sequence[str]) -> pa.Table:
    import pyarrow.parquet as pq

    name, system = in_arrow(location(file))
    known = pq.read_schema(name, filesystem=system).names
    wanted = list(dict.fromkeys(columns)) if columns and {*columns} <= {*known} else None
    return pq.read_table(name, columns=wanted, filesystem=system)


def _csv(file: str, cells: Cells, columns: Sequence[str]) -> pa.Table:
    """Reads a CSV file with a line of names. Errors name the line. An empty cell has no value, not even of a text."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    delimiter = cells.delimiter or ("\t" if ".tsv" in Path(file).suffixes else ",")
    with local_copy(location(file)) as copy:
        first = first_line(copy)
        other = max(_BETWEEN, key=first.count)
        if cells.delimiter is None and delimiter not in first and other in first:
            names = {",": "commas", "\t": "tabs"}
            text = f"{file!r} must have {names[delimiter]} between its cells, got {first[:80]!r} as its line of names"
            raise BadValue(f"{text}; add this line to `data`:\n    delimiter: {_BETWEEN[other]}")

        def read(threads: bool) -> pa.Table:
            convert = pa_csv.ConvertOptions(
                strings_can_be_null=True,
                decimal_point=cells.decimal,
                column_types=dict.fromkeys(cells.texts, pa.string()),
            )
            parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
            table = pa_csv.read_csv(copy, pa_csv.ReadOptions(use_threads=threads), parse, convert)
            _ = table.column_names  # raises an error if they are not in UTF-8
            return table

        try:
            return read(True)
        except pa.ArrowInvalid:
            return read(False)  # whose errors have the number of the line


def first_line(file: Path) -> str:
    """Returns the first line of a CSV file, which may be compressed."""
    import pyarrow as pa

    with pa.input_stream(str(file)) as content:
        return re.split(rb"[\r\n]", content.read(2**16), maxsplit=1)[0].decode()


def _json(file: str, cells: Cells, columns: Sequence[str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.json as pa_json

    with local_copy(location(file)) as copy:
        content = require_file(copy).read_bytes().removeprefix(BOM_UTF8) if file.lower().endswith(".json") else b""
        return (
            pa.Table.from_pylist(json.loads(content)) if content.lstrip().startswith(b"[") else pa_json.read_json(copy)
        )


_FORMATS: dict[str, tuple[tuple[str, ...], Callable[[str, Cells, Sequence[str]], pa.Table]]] = {
    "a whole Parquet file": ((".parquet",), _parquet),
    "a whole CSV file with a line of column names": ((".csv", ".csv.gz", ".tsv", ".tsv.gz"), _csv),
    "a whole file of JSON, a list of objects or an object on each line": (
        (".jsonl", ".json", ".jsonl.gz", ".json.gz"),
        _json,
    ),
}


def joined(key: str, files: Sequence[str], tables: Sequence[pa.Table]) -> Rows:
    """Joins tables with the same columns, in any order. Whole numbers in one file and others in another are numbers.

    key: the key of the files, for errors. Raises ValueError that names the column and both files where they differ.
    """
    import pyarrow as pa

    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        if sorted(table.column_names) != sorted(first.column_names):
            only = sorted(set(first.column_names) ^ set(table.column_names)) or ["twice"]
            has, lacks = (file, files[0]) if only[0] in table.column_names else (files[0], file)
            text = f"got {only[0]!r} in {has!r} and not in {lacks!r}; make them alike, or name fewer files"
            raise BadValue(f"must match files with the same columns, {text}", key)
    names = first.column_names
    ordered = [table if table.column_names == names else table.select(names) for table in tables]
    for file, table in zip(files, ordered, strict=True):
        for one, other in zip(first.schema, table.schema, strict=True):
            try:
                pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
            except (pa.ArrowTypeError, pa.ArrowInvalid):
                got = f"got {one.name!r} as {_kind(first, one.name)} in {files[0]!r} and {_kind(table, one.name)}"
                must = f"must match files with the same types of columns, {got} in {file!r}"
                raise BadValue(f"{must}; make them alike, or name fewer files", key) from None
    lengths = [(file, table.num_rows) for file, table in zip(files, tables, strict=True)]
    return Rows(pa.concat_tables(ordered, promote_options="permissive") if len(tables) > 1 else first, lengths)


def _kind(table: pa.Table, name: str) -> str:
    """Returns the type of a column; of texts, with one that is no number, because it may be why they are texts."""
    found = first_text(table[name])
    return str(table[name].type) if found is None else f"string, such as {found[1]!r} in row {found[0]},"


def first_text(column: pa.ChunkedArray, decimal: str = ".") -> tuple[int, str] | None:
    """Returns the first row of texts that is no number, and what it holds; None if there is none."""
    import pyarrow.types as types

    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        return None
    rows = enumerate(column.to_pylist())
    return next(((row, text) for row, text in rows if text is not None and not is_number(text, decimal)), None)


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number with this decimal point."""
    try:
        float(text if decimal == "." else text.replace(".", "?").replace(decimal, "."))
    except ValueError:
        return False
    return True
