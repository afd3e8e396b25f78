"""Columns of Parquet and CSV files."""

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from raysim.data.sources.inputs import numbers_rows
from raysim.data.sources.reading import all_matching, reading
from raysim.parts.errors import BadValue
from results.location import location
from results.store import in_arrow, local_copy

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(
    key: str, patterns: tuple[str, ...], columns: tuple[str, ...] | None = None, suffix: str = ""
) -> "pa.Table":
    """Reads all files that match, with the same columns, the files of a pattern in order of their names.

    key: the key of the patterns, for errors. columns: those to read of Parquet files that
    have all of them; None: all. suffix: of the files' names, where they need not have one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables, paths = [], all_matching(key, patterns)
    for path in paths:
        if (suffix or path).lower().endswith(".parquet"):
            with reading(path, "a whole Parquet file"):
                name, system = in_arrow(location(path))
                some = set(columns or ()) <= set(pq.read_schema(name, filesystem=system).names)
                wanted = list(dict.fromkeys(columns)) if columns and some else None
                tables.append(pq.read_table(name, columns=wanted, filesystem=system))
        elif path.lower().endswith((".csv", ".csv.gz", ".tsv")):
            what, cure = "a whole CSV file with a line of column names", "write it again, in UTF-8"
            with reading(path, what, cure), local_copy(location(path)) as copy:
                tables.append(_of_csv(str(copy)))
        else:
            raise BadValue(f"must be a .parquet, .csv, .csv.gz or .tsv file, got {path!r}; save it as one", key)
    different = [path for path, table in zip(paths, tables, strict=True) if not table.schema.equals(tables[0].schema)]
    if different:
        raise BadValue(
            f"files must hold the same columns of the same types, got others in {different[0]!r} than in "
            f"{paths[0]!r}; make them alike"
        )
    table = pa.concat_tables(tables)
    if table.num_rows == 0:
        raise BadValue(f"must match files with rows, got none in {paths[0]!r}", key)
    return table


def _of_csv(path: str) -> "pa.Table":
    """Reads a CSV file. Its line of names tells what is between cells: a comma or, in a line without any, a semicolon
    or a tab. Numbers between semicolons may have decimal commas."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    with pa.input_stream(path) as content:
        first = content.read(2**16).partition(b"\n")[0].decode()
    delimiter = next((one for one in ",;\t" if one in first), ",")

    def read(decimal_point: str) -> "pa.Table":
        table = pa_csv.read_csv(
            path,
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            # An empty cell is no label of its own.
            convert_options=pa_csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal_point),
        )
        _ = table.column_names  # raises an error if they are not in UTF-8
        return table

    table = read(".")
    return read(",") if delimiter == ";" and any(map(_has_decimal_commas, table.columns)) else table


def _has_decimal_commas(column: "pa.ChunkedArray") -> bool:
    some = column.drop_null()[:100].to_pylist()
    return bool(some) and all(isinstance(value, str) and re.fullmatch(r"-?\d*,\d+", value) for value in some)


def table_of(key: str, columns: dict[str, np.ndarray]) -> "pa.Table":
    """Makes a table of columns in memory. key: where they are given, for errors."""
    import pyarrow as pa

    if wrong := [f"{name!r} of shape {array.shape}" for name, array in columns.items() if array.ndim != 1]:
        raise BadValue(f"must have columns with one value for each row, got {wrong[0]}", key)
    if len(lengths := {len(array) for array in columns.values()}) != 1 or lengths == {0}:
        raise BadValue(f"must have columns of one length, with at least one row, got lengths {sorted(lengths)}", key)
    return pa.table({name: pa.array(array) for name, array in columns.items()})


def require(
    table: "pa.Table", path: str, names: tuple[str, ...], place: Callable[[int], str] = "row {}".format
) -> None:
    """Raises ValueError unless a table has one column of each name, with a value in every row.

    place: says where a row is, for errors.
    """
    if lacking := [name for name in names if name not in table.column_names]:
        raise BadValue(f"{path!r} must have a column {lacking[0]!r}, got {table.column_names[:20]!r}; correct it")
    times = Counter(table.column_names)
    if double := [name for name in names if times[name] > 1]:
        raise BadValue(
            f"{path!r} must have one column of each name used, got {times[double[0]]} columns "
            f"{double[0]!r}; rename or drop the others"
        )
    counts = {name: table[name].null_count for name in names if table[name].null_count}
    if counts:
        first = {name: place(table[name].is_null().index(True).as_py()) for name in counts}
        text = ", ".join(f"{count} in {name!r}, the first in {first[name]}" for name, count in counts.items())
        raise BadValue(
            f"{path!r} must have a value in every row of the columns used, got missing values: {text}; "
            "fill them, or drop the rows or the column"
        )


def numbers(table: "pa.Table", name: str) -> np.ndarray:
    """Returns a column of numbers or booleans, float64 (n,): large numbers differ by less than float32 can tell.

    Raises ValueError for others, and if one is not finite as a float32.
    """
    values = plain(table, name)
    if values.dtype.kind not in "fiub":
        wrong, others = [row for row, text in enumerate(values.tolist()) if not _is_number(text)], len(values)
        cell = f"{values[wrong[0]].item()!r} in row {wrong[0]}" if wrong else f"{values[0].item()!r}"
        cure = "encode it as numbers, or leave it out of `features`"
        if 0 < len(wrong) <= others // 10:
            cure = f"correct these {len(wrong)} cells, or leave it out of `features`"
        raise BadValue(
            f"features must be numbers, got {table.schema.field(name).type} in column {name!r}, such as {cell}; {cure}"
        )
    finite = np.isfinite(values.astype(np.float32))
    if wrong := np.flatnonzero(~finite).tolist():
        raise BadValue(
            f"features must be finite, got {len(wrong)} values in {name!r} that are not, such as "
            f"{values[wrong[0]]} in row {wrong[0]}; fill them, or drop the rows or the column"
        )
    return values.astype(np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def plain(table: "pa.Table", name: str) -> np.ndarray:
    """Returns a column as an array (n,) of numbers, booleans or texts."""
    import pyarrow.types as types

    column = table[name]
    if types.is_nested(column.type) or types.is_binary(column.type):
        raise BadValue(f"column {name!r} must hold numbers, booleans or texts in UTF-8, got {column.type}; convert it")
    if types.is_decimal(column.type):
        column = column.cast("float64")
    values: np.ndarray = column.to_numpy()
    return values.astype(np.str_) if values.dtype.kind in "OMm" else values


def is_index(table: "pa.Table", name: str) -> bool:
    """Whether a column only numbers or names the rows: an index that pandas saves, whole numbers from 0 or 1 to that of
    all rows, or whole numbers that all differ in a column with the name of an index."""
    import pyarrow.types as types

    if name == "" or re.fullmatch(r"Unnamed: \d+(\.\d+)?|__index_level_\d+__", name):
        return True
    if name in (table.schema.pandas_metadata or {}).get("index_columns", ()):
        return True
    kind = table.schema.types[table.column_names.index(name)]
    if table.column_names.count(name) > 1 or table[name].null_count:
        return False
    if not (types.is_integer(kind) or types.is_floating(kind)):
        return False
    values = plain(table, name)
    named = re.fullmatch(r"(.*[_ ])?(id|idx|index|level_0|row|uid)", name.lower())
    differ = values.dtype.kind in "iu" and len(np.unique(values)) == len(values)
    return bool(named and differ) or (numbers_rows(values) and bool(values.min() <= 1))
