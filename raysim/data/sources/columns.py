"""Columns of Parquet and CSV files."""

import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raysim.data.sources.csv_file import SUFFIXES, read_csv
from raysim.data.sources.inputs import numbers_rows, single_of
from raysim.data.sources.joined import Rows, is_number, joined
from raysim.data.sources.reading import all_matching, reading
from raysim.parts.errors import BadValue
from results.location import is_local, location
from results.store import in_arrow, local_copy

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(
    key: str,
    patterns: tuple[str, ...],
    columns: tuple[str, ...] | None = None,
    suffix: str = "",
    texts: Collection[str] = (),
) -> Rows:
    """Reads all files that match, with the same columns, the files of a pattern in order of their names.

    key: the key of the patterns, for errors. columns: those to read of Parquet files that have all of them; None: all.
    suffix: of the files' names, where they need not have one. texts: columns of CSV whose cells are texts.
    """
    import pyarrow.parquet as pq

    tables, paths = [], all_matching(key, patterns)
    for path in paths:
        if (suffix or path).lower().endswith(".parquet"):
            with reading(path, "a whole Parquet file"):
                name, system = in_arrow(location(path))
                some = set(columns or ()) <= set(pq.read_schema(name, filesystem=system).names)
                wanted = list(dict.fromkeys(columns)) if columns and some else None
                tables.append(pq.read_table(name, columns=wanted, filesystem=system))
        elif path.lower().endswith(SUFFIXES):
            what, cure = "a whole CSV file with a line of column names", "correct it, or write it again, in UTF-8"
            with reading(path, what, cure), local_copy(location(path)) as copy:
                tables.append(read_csv(str(copy), texts))
        else:
            folder = is_local(location(path)) and Path(path).expanduser().is_dir()
            cure = f"name its files, such as {str(Path(path) / '*.csv')!r}" if folder else "save it as one"
            raise BadValue(f"must be a .parquet, .csv, .csv.gz or .tsv file, got {path!r}; {cure}", key)
    rows = joined(key, paths, tables)
    if rows.table.num_rows == 0:
        raise BadValue(f"must match files with rows, got none in {paths[0]!r}; correct the path", key)
    return rows


def table_of(key: str, columns: dict[str, np.ndarray]) -> Rows:
    """Makes a table of columns in memory. key: where they are given, for errors."""
    import pyarrow as pa

    if wrong := [f"{name!r} of shape {array.shape}" for name, array in columns.items() if array.ndim != 1]:
        raise BadValue(f"must have columns with one value for each row, got {wrong[0]}", key)
    if len(lengths := {len(array) for array in columns.values()}) != 1 or lengths == {0}:
        raise BadValue(f"must have columns of one length, with at least one row, got lengths {sorted(lengths)}", key)
    if wrong := [f"{array.dtype} in column {name!r}" for name, array in columns.items() if array.dtype.kind in "cV"]:
        raise BadValue(f"must have columns of numbers or texts, got {wrong[0]}; make columns of its parts", key)
    native = {name: array.astype(array.dtype.newbyteorder("=")) for name, array in columns.items()}
    table = pa.table({name: pa.array(array) for name, array in native.items()})
    return Rows(table, [(key, table.num_rows)])


def require(rows: Rows, names: tuple[str, ...]) -> None:
    """Raises ValueError unless a table has one column of each name, with a value in every row."""
    import pyarrow.compute as pc

    table, path = rows.table, rows.name
    if lacking := [name for name in names if name not in table.column_names]:
        raise BadValue(f"{path} must have a column {lacking[0]!r}, got {table.column_names[:20]!r}; correct the name")
    times = Counter(table.column_names)
    if double := [name for name in names if times[name] > 1]:
        raise BadValue(
            f"{path} must have one column of each name used, got {times[double[0]]} columns "
            f"{double[0]!r}; rename or drop the others"
        )
    lacks = {name: table[name].is_null(nan_is_null=True) for name in names}
    if counts := {name: count for name, lack in lacks.items() if (count := pc.sum(lack).as_py())}:
        first = {name: rows.place(lacks[name].index(True).as_py()) for name in counts}
        text = ", ".join(f"{count} in {name!r}, the first in {first[name]}" for name, count in counts.items())
        raise BadValue(
            f"{path} must have a value in every row of the columns used, got missing values: {text}; "
            "fill them, or drop the rows or the column"
        )


def numbers(rows: Rows, name: str) -> np.ndarray:
    """Returns a column of numbers or booleans, float64 (n,): large numbers differ by less than float32 can tell.

    Raises ValueError for others, and if one is not finite as a float32.
    """
    values = plain(rows.table, name)
    if values.dtype.kind not in "fiub":
        wrong, others = [row for row, text in enumerate(values.tolist()) if not is_number(text)], len(values)
        cell = f"{values[row := wrong[0] if wrong else 0].item()!r} in {rows.place(row)}"
        cure = "encode it as numbers" if wrong else "convert it, such as with astype(float)"
        if 0 < len(wrong) <= others // 10:
            cure = f"correct these {len(wrong)} cells"
        got = f"got {rows.table.schema.field(name).type} in column {name!r}, such as {cell}"
        raise BadValue(f"features must be numbers, {got}; {cure}, or name all inputs but this in data.features")
    if wrong := np.flatnonzero(~np.isfinite(single_of(values))).tolist():
        raise BadValue(
            f"features must be finite, got {len(wrong)} values in {name!r} that are not, such as "
            f"{values[wrong[0]]} in {rows.place(wrong[0])}; fill them, or drop the rows or the column"
        )
    return values.astype(np.float64)


def require_plain(table: "pa.Table", name: str) -> None:
    """Raises ValueError if a column holds lists, records or bytes."""
    import pyarrow.types as types

    kind = table[name].type
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        raise BadValue(f"column {name!r} must hold numbers, booleans or texts in UTF-8, got {kind}; convert it")


def plain(table: "pa.Table", name: str) -> np.ndarray:
    """Returns a column as an array (n,) of numbers, booleans or texts."""
    import pyarrow.types as types

    require_plain(table, name)
    column = table[name]
    if types.is_decimal(column.type):
        column = column.cast("float64")
    values: np.ndarray = column.to_numpy()
    return values.astype(np.str_) if values.dtype.kind in "OMm" else values


def is_index(table: "pa.Table", name: str) -> bool:
    """Whether a column only numbers or names the rows: an index that pandas or R saves, whole numbers that number all
    rows, or a part of them, from 0 or 1, or whole numbers that all differ in a column with the name of an index."""
    if name == "" or re.fullmatch(r"Unnamed: \d+(\.\d+)?|__index_level_\d+__|\.\.\.1", name):
        return True
    if name in (table.schema.pandas_metadata or {}).get("index_columns", ()):
        return True
    if (values := _whole(table, name)) is None:
        return False
    names = r"(.*[_ ])?(id|idx|index|level_0|row|uid)|row_?(id|num|number|names?)|#|no\.?|nr\.?"
    differ = values.dtype.kind in "iu" and len(np.unique(values)) == len(values)
    if differ and re.fullmatch(names, name.lower()):
        return True
    return numbers_rows(values) and bool(values.min() >= 0 and values.max() <= 2 * len(values))


def counts_rows(table: "pa.Table", name: str) -> bool:
    """Whether the numbers of a column may number the rows of a larger table, from any number."""
    values = _whole(table, name)
    return values is not None and numbers_rows(values)


def _whole(table: "pa.Table", name: str) -> np.ndarray | None:
    """Returns a column of numbers without missing ones; None if it is another."""
    import pyarrow.types as types

    kind = table.schema.types[table.column_names.index(name)]
    if table.column_names.count(name) > 1 or table[name].null_count:
        return None
    return plain(table, name) if types.is_integer(kind) or types.is_floating(kind) else None
