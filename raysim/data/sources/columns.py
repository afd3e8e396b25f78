"""Columns of tables: what a source needs of them is there, and has values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from raysim.data.sources.inputs import single_of
from raysim.data.sources.rows import Rows, first_text
from raysim.parts.errors import BadValue, nearest
from results.texts import count

if TYPE_CHECKING:
    import pyarrow as pa


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


def require(rows: Rows, names: tuple[str, ...], key: str = "") -> None:
    """Raises ValueError unless a table has one column of each name, with a value in every row. key: that names them."""
    import pyarrow.compute as pc

    table, path = rows.table, rows.name
    if lacking := [name for name in names if name not in table.column_names]:
        found = f"{table.column_names[:20]!r}{nearest(lacking[0], table.column_names)}"
        raise BadValue(f"{path} must have a column {lacking[0]!r}, got {found}; correct the name", key)
    require_one_of_each(rows, names)
    lacks = {name: table[name].is_null(nan_is_null=True) for name in names}
    if counts := {name: number for name, lack in lacks.items() if (number := pc.sum(lack).as_py())}:
        first = {name: rows.place(lacks[name].index(True).as_py()) for name in counts}
        text = ", ".join(f"{number} in {name!r}, the first in {first[name]}" for name, number in counts.items())
        must = f"{path} must have a value in every row of the columns used, got missing values: {text}"
        raise BadValue(f"{must}; fill them, or drop the rows or the column", key)


def require_one_of_each(rows: Rows, names: Iterable[str]) -> None:
    """Raises ValueError if a table has several columns of a name."""
    times = Counter(rows.table.column_names)
    if double := [name for name in names if times[name] > 1]:
        text = f"{rows.name} must have one column of each name used, got {times[double[0]]} columns"
        raise BadValue(f"{text} {double[0]!r}; rename or drop the others")


def is_numeric(table: pa.Table, name: str) -> bool:
    """Whether a column holds numbers or booleans."""
    import pyarrow.types as types

    kind = table[name].type
    return any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def numbers(rows: Rows, name: str) -> np.ndarray:
    """Returns a column of numbers or booleans, float64 (n,): large numbers differ by less than float32 can tell.

    Raises ValueError if one is not finite as a float32.
    """
    values = plain(rows.table, name)
    if values.dtype.kind == "U":
        row, cell = first_text(rows.table[name]) or (0, values[0])
        text = f"column {name!r} must hold numbers, as in training, got the text {str(cell)!r} in {rows.place(row)}"
        raise BadValue(f"{text}; make it a column of numbers")
    if wrong := np.flatnonzero(~np.isfinite(single_of(values))).tolist():
        raise BadValue(
            f"features must be finite, got {count(len(wrong), 'value')} in {name!r} that are not, such as "
            f"{values[wrong[0]]} in {rows.place(wrong[0])}; fill them, or drop the rows or the column"
        )
    return values.astype(np.float64)


def encoded(rows: Rows, features: Iterable[str], kinds: Mapping[str, np.ndarray], dtype: type) -> np.ndarray:
    """Returns features, (n, features): columns of numbers, and for each categorical one those of its values, 0 or 1.

    kinds: the values of the categorical ones. Raises ValueError for a value that is none of them.
    """
    found = []
    for name in features:
        if name not in kinds:
            found.append(numbers(rows, name)[:, None])
            continue
        column = plain(rows.table, name)
        is_kind = column[:, None] == kinds[name]
        if not (known := is_kind.any(axis=1)).all():
            row = int(known.argmin())
            some = ", ".join([*map(repr, kinds[name][:20].tolist()), *["..."] * (len(kinds[name]) > 20)])
            got = f"{column[row].item()!r} in {rows.place(row)}"
            raise BadValue(f"column {name!r} must hold a value of the training samples, one of {some}, got {got}")
        found.append(is_kind)
    return np.concatenate(found, axis=1).astype(dtype)


def owners(values: np.ndarray) -> np.ndarray:
    """Returns the names of owners, which were read as texts, as numbers if all are and none becomes another's: 1 and 01
    stay apart."""
    if values.dtype.kind != "U":
        return values
    different = len(np.unique(values))
    for kind in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            found = values.astype(kind)
            if len(np.unique(found)) == different and np.isfinite(found).all():
                return found
    return values


def require_plain(table: pa.Table, name: str) -> None:
    """Raises ValueError if a column holds lists, records or bytes."""
    import pyarrow.types as types

    kind = table[name].type
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        raise BadValue(f"column {name!r} must hold numbers, booleans or texts in UTF-8, got {kind}; convert it")


def plain(table: pa.Table, name: str) -> np.ndarray:
    """Returns a column as an array (n,) of numbers, booleans or texts."""
    import pyarrow.types as types

    require_plain(table, name)
    column = table[name]
    if types.is_decimal(column.type):
        column = column.cast("float64")
    values: np.ndarray = column.to_numpy()
    return values.astype(np.str_) if values.dtype.kind in "OMm" else values
