"""Writes a run's tables, and computes the digest of all rows."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from results.columns import is_marked
from results.location import is_local, location
from results.rows import Row
from results.schemas import OWN, ROWS, TABLES, with_own
from results.tables import compact, keep_first, last_serial, part_files, schema_of, write_part

BUFFER_ROWS = 50_000  # rows at which a buffer is written to disk
FLUSH_S, STORE_FLUSH_S = 5.0, 30.0  # an object store gets larger files: each takes a request to write, and one to read
_REAL = (float, np.floating)
# Stands for null in a hash: as a float a NaN other than np.nan, as an integer beyond any count.
_NULL = 0x7FF8000000000001


class Writer:
    """Writes a run's tables, as `folder/<table>/*.parquet`.

    folder: the run's folder or its URI, which is made if it is missing.
    run: the id to put in every row.
    keep: for each table, how many of the rows in the folder stay; the others, and tables that are not named, are
    deleted. None: the folder must hold no rows; raises ValueError if it does.
    heard: tables whose rows are also kept for `new_rows`.
    flush_seconds: how much real time may pass between two flushes, as long as rows are added; by default 5, or 30 on
    an object store. The first row starts the clock.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        run: str,
        *,
        keep: dict[str, int] | None = None,
        heard: Iterable[str] = (),
        flush_seconds: float | None = None,
    ) -> None:
        folder = location(folder)
        taken = [table for table in TABLES if part_files(folder, table)]
        if taken and keep is None:
            raise ValueError(f"{folder}: must hold no rows yet, got {', '.join(taken)}; write to another folder")
        self._buffers = {table: _Buffer(folder, table, run) for table in TABLES}
        self._of_class = {ROWS[table]: buffer for table, buffer in self._buffers.items()}
        for table, buffer in self._buffers.items():
            if keep is not None:
                buffer.restore(keep.get(table, 0))
        self._heard: dict[str, list[dict[str, Any]]] = {table: [] for table in heard}
        default = FLUSH_S if is_local(folder) else STORE_FLUSH_S
        self._flush_seconds = default if flush_seconds is None else flush_seconds
        self._flushed_at: float | None = None  # None until a row was added

    def add(self, row: Row, own: Mapping[str, float | None] | None = None) -> None:
        """Adds a row to the table of its class.

        own: numbers for custom columns of the algorithm, by name; such a column begins with the first row that has it.
        A value of a wrong type is found only by `flush`.
        """
        buffer = self._of_class[type(row)]
        self.add_columns(buffer.table, buffer.columns_of(row), [own or {}])

    def add_columns(
        self, table: str, columns: Mapping[str, list[Any]], own: Sequence[Mapping[str, float | None]] = ()
    ) -> None:
        """Adds rows of a table, given as its columns; those that are left out are null.

        own: for each row, what `add` takes; () if there are no numbers for own columns.
        """
        buffer = self._buffers[table]
        rows = buffer.add_columns(columns, own)
        if table in self._heard:
            self._heard[table] += buffer.last(rows)
        self._flushed_at = self._flushed_at or time.monotonic()
        if buffer.held >= BUFFER_ROWS or time.monotonic() - self._flushed_at >= self._flush_seconds:
            self.flush()

    def new_rows(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the rows of the heard tables that were added since the last call, for each table that has some."""
        found = {table: rows for table, rows in self._heard.items() if rows}
        self._heard |= {table: [] for table in found}
        return found

    @property
    def rows(self) -> dict[str, int]:
        """How many rows each table has so far, with those that are not flushed yet."""
        return {table: buffer.rows for table, buffer in self._buffers.items()}

    @property
    def written(self) -> dict[str, int]:
        """How many rows of each table are in its files."""
        return {table: buffer.written for table, buffer in self._buffers.items()}

    def flush(self) -> None:
        """Writes all rows added so far to new part files. Raises ValueError for a value of a wrong type."""
        for buffer in self._buffers.values():
            if buffer.held:
                buffer.flush()
        self._flushed_at = time.monotonic()

    def close(self) -> None:
        """Flushes, and merges each table's part files into one."""
        self.flush()
        for buffer in self._buffers.values():
            buffer.compact()

    def digest(self) -> str:
        """Flushes, and returns the SHA-256 of all rows so far in hexadecimal, each table's in order of writing.

        It depends on the values alone: not on the run's id, on wall columns (see `results.columns.Mark`) or on when
        rows were flushed. Floats count with every bit, all NaNs are equal, and null is a value, too.
        """
        self.flush()
        lines = [line for buffer in self._buffers.values() for line in buffer.digests()]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class _Buffer:
    """The rows of one table that are not yet written, and a hash of each column over those that are.

    The hash of a column does not depend on where flushes cut it.
    """

    def __init__(self, folder: Path, table: str, run: str) -> None:
        self._folder, self.table, self._run = folder, table, run
        columns = [column for column in TABLES[table] if column.name != "run"]
        self._names = tuple(column.name for column in columns)
        self._values = attrgetter(*self._names)
        digested = (c for c in columns if not any(is_marked(c, mark) for mark in ("wall", "estimated", "derived")))
        self._hashes = {column.name: hashlib.sha256() for column in digested}
        # Of the rows not yet written; a list that is shorter lacks the rows that come last, which are null.
        self._columns: dict[str, list[Any]] = {name: [] for name in self._names}
        self._own: dict[str, Any] = {}  # hashes of own columns, by name
        self._sparse = frozenset(column.name for column in columns if is_marked(column, "sparse"))
        self._filled: set[str] = set()  # own and sparse columns that hold more than null
        self._own_rows: list[Mapping[str, float | None]] = []  # numbers for own columns, of the rows not yet written
        self._parts = 0  # serial number of the next part file
        self.written = 0  # rows in part files

    @property
    def held(self) -> int:
        """How many rows are not yet written."""
        return len(self._own_rows)

    @property
    def rows(self) -> int:
        return self.written + self.held

    def restore(self, rows: int) -> None:
        """Keeps the first rows in the folder, deletes the others, and continues from there."""
        schema = schema_of(self.table, part_files(self._folder, self.table))
        for name in schema.names[len(self._names) + 1 :]:
            self._begin(name)
        for kept in keep_first(self._folder, self.table, schema, rows, self._run):
            for name in (*self._hashes, *self._own):
                self._hash(name, kept.column(name).unify_dictionaries().combine_chunks())
        self._parts = last_serial(self._folder, self.table) + 1
        self.written = rows

    @property
    def _schema(self) -> pa.Schema:
        return with_own(self.table, self._own)

    def _begin(self, name: str) -> None:
        """Begins an own column, which is null in all rows before."""
        if self.table not in OWN or name in ("run", *self._names):
            raise ValueError(f"{self.table}: must have another name for a custom column, got {name!r}")
        self._own[name] = hashlib.sha256(_bytes(pa.nulls(self.written, pa.float64())))

    def _hash(self, name: str, array: pa.Array[Any]) -> None:
        (self._own if name in self._own else self._hashes)[name].update(_bytes(array))
        if array.null_count < len(array):
            self._filled.add(name)

    def columns_of(self, row: Row) -> dict[str, list[Any]]:
        values = zip(self._names, self._values(row), strict=True)
        return {name: [value] for name, value in values if value is not None}

    def add_columns(self, columns: Mapping[str, list[Any]], own: Sequence[Mapping[str, float | None]]) -> int:
        """Returns how many rows it adds."""
        rows = len(next(iter(columns.values())))
        for name in dict.fromkeys(name for row in own for name in row):
            if name not in self._own:
                self._begin(name)
        for name in columns:
            held = self._columns[name]
            held += [None] * (self.held - len(held))  # rows that left it out
            held += columns[name]
        self._own_rows += own or [{}] * rows
        return rows

    def last(self, rows: int) -> list[dict[str, Any]]:
        """Returns the last rows that were added, which must not be written yet."""
        first, last = self.held - rows, self.held
        cells = zip_longest(*(held[first:last] for held in self._columns.values()))
        own = self._own_rows[-rows:]
        return [{**dict(zip(self._names, row, strict=True)), **more} for row, more in zip(cells, own, strict=True)]

    def flush(self) -> None:
        """Writes a part file, and hashes its columns."""
        written = self.held
        arrays = [self._array(name, values) for name, values in self._columns.items()]
        own = {name: pa.array([row.get(name) for row in self._own_rows], pa.float64()) for name in self._own}
        run = pa.DictionaryArray.from_arrays(np.zeros(written, np.int32), pa.array([self._run]))
        write_part(self._folder, self.table, self._parts, pa.table([run, *arrays, *own.values()], schema=self._schema))
        for name, array in (*zip(self._names, arrays, strict=True), *own.items()):
            if name in self._hashes or name in self._own:
                self._hash(name, array)
        self._parts += 1
        self.written += written
        self._columns, self._own_rows = {name: [] for name in self._names}, []

    def compact(self) -> None:
        if self.written < (self._parts - 1) * BUFFER_ROWS:  # else all parts but the last are large
            compact(self._folder, self.table, self._schema)

    def digests(self) -> Iterator[str]:
        left_out = (self._sparse | self._own.keys()) - self._filled
        hashes = {**self._hashes, **dict(sorted(self._own.items()))}
        return (f"{self.table}.{name} {found.hexdigest()}" for name, found in hashes.items() if name not in left_out)

    def _array(self, name: str, values: Sequence[Any]) -> pa.Array[Any]:
        column = TABLES[self.table].field(name)
        if not values and column.nullable:
            return pa.nulls(self.held, column.type)
        values = [*values, *[None] * (self.held - len(values))]
        try:
            if pa.types.is_integer(column.type) and any(issubclass(kind, _REAL) for kind in set(map(type, values))):
                # Arrow would cut digits off.
                raise TypeError(repr(next(value for value in values if isinstance(value, _REAL))))
            array: pa.Array[Any] = pa.array(values, column.type)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            kind = "text" if pa.types.is_dictionary(column.type) else column.type
            raise ValueError(f"{self.table}.{name}: must be {kind}, got a value that is not: {error}") from None
        if array.null_count and not column.nullable:
            place = array.is_null().index(True).as_py()
            row = self.last(self.held)[place]
            raise ValueError(f"{self.table}.{name}: must not be null, got the row {row!r}")
        return array


def _bytes(array: pa.Array[Any]) -> bytes:
    """Returns the bytes to hash of a piece of a column. The bytes of a column are those of its pieces, joined."""
    if pa.types.is_dictionary(array.type):
        texts = [f"{value!a}\n".encode() for value in [*array.dictionary.to_pylist(), None]]
        return b"".join(map(texts.__getitem__, array.indices.fill_null(len(texts) - 1).to_pylist()))
    cells = array.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(array.type):
        cells = np.where(np.isnan(cells), np.nan, cells).view(np.int64)
    # Columns of 32 bits take its lower half, which is 1. It is written out because numpy 2.5 refuses to convert it.
    null = np.array(_NULL).astype(np.int64 if cells.dtype == bool else cells.dtype)
    return np.where(array.is_null().to_numpy(zero_copy_only=False), null, cells).astype("<i8").tobytes()
