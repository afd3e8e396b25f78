"""The part files of a table. A reader always sees whole rows, and each once, even if the writer was killed.

A part gets its final name only when it is complete. Compaction writes the merged file beside the parts, and then
removes them. The name of a merged file says which parts it holds, and `part_files` leaves these out. On a disk, the
merged file is hidden until the parts are gone, so that other programs that list the folder never read a row twice.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from results.disk import replacing, writing
from results.location import is_local
from results.schemas import OWN, own_names, with_own
from results.store import in_arrow, make_folder, remove, stamps

_PART = "[0-9][0-9][0-9][0-9][0-9][0-9]"
# Names of parts as they were written, of hidden merged files, and of merged files: in the order in which a file moves
# through them, so that who lists one after the other misses none.
_NAMES = (f"{_PART}.parquet", f".{_PART}-{_PART}.parquet", f"{_PART}-{_PART}.parquet")
GROUP_ROWS = 1 << 18  # about how many rows a row group of a merged file has; they are in memory together


class DamagedPart(ValueError):
    """Raised for a part file that cannot be read."""


def part_files(run: Path, table: str) -> list[Path]:
    """Returns the files that hold a table's rows, in order of writing; none if no row was written.

    Files with names that the writer does not give, such as "copy of 000001.parquet", are left out.
    """
    return _not_merged(_listed(run, table))


def _listed(run: Path, table: str) -> list[Path]:
    """Returns all parts of a table. On an object store, one request lists the whole run."""
    if is_local(run):
        return [path for pattern in _NAMES for path in sorted((run / table).glob(pattern))]
    patterns = [f"{table}/{pattern}" for pattern in _NAMES]
    return [run / name for name in stamps(run) if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _not_merged(files: list[Path]) -> list[Path]:
    """Leaves out the files whose rows the last merged file holds."""
    merged = max((file for file in files if "-" in file.stem), key=_serial, default=None)
    return files if merged is None else [merged, *(file for file in files if _serial(file) > _serial(merged))]


def _serial(file: Path) -> int:
    """Returns a part's serial number; for a merged file, one that is larger than those of the parts that it holds."""
    return int(file.stem[-6:])


def schema_of(table: str, files: Sequence[Path]) -> pa.Schema:
    """Returns the schema of a table's part files, in order of writing: later ones have all own columns of earlier."""
    if not files or table not in OWN:
        return with_own(table, ())
    return with_own(table, own_names(table, read_schema(files[-1])))


def read_schema(file: Path) -> pa.Schema:
    """Returns the schema of a part file."""
    name, system = in_arrow(file)
    return pq.read_schema(name, filesystem=system)


def write_part(run: Path, table: str, serial: int, rows: pa.Table) -> None:
    """Writes rows as the part file with this serial number."""
    path = run / table / f"{serial:06d}.parquet"
    with writing(path.parent):
        make_folder(path.parent)
    with replacing(path) as hidden:
        pq.write_table(rows, hidden, **_options(rows.schema))


def compact(run: Path, table: str, schema: pa.Schema) -> None:
    """Merges a table's part files into one, with the rows in the same order.

    If a part is damaged, or if there is no room for the new file, the parts stay as they are.
    """
    parts = part_files(run, table)
    if len(parts) > 1:
        with suppress(DamagedPart, OSError):
            _rewrite(run, table, parts, schema, _groups(parts, schema))


def keep_first(run: Path, table: str, schema: pa.Schema, rows: int, run_id: str) -> Iterator[pa.Table]:
    """Keeps the first rows of a table, gives them the id of a run, and deletes the others. Yields the rows it keeps.

    It also deletes what a killed writer left half written. Raises ValueError if the table holds fewer rows, and
    CannotWrite if there is no room for the kept ones; the table then stays as it is.
    """
    parts = part_files(run, table)
    kept = list(_first(_groups(parts, schema), rows, run_id)) if rows else []
    if (found := sum(group.num_rows for group in kept)) < rows:
        raise ValueError(f"{run / table}: must hold {rows} rows, which a checkpoint counts on, got {found}")
    with writing(run / table):
        if kept:
            _rewrite(run, table, parts, schema, iter(kept))
        else:
            remove(_listed(run, table))
        if is_local(run):
            remove((run / table).glob(".*.tmp"))
    yield from kept


def require_whole(run: Path, table: str, rows: int) -> None:
    """Raises DamagedPart, which names the file, if a table's first rows cannot be read or fail their checksums."""
    for part in part_files(run, table) if rows else ():
        if rows > 0:
            rows -= _read(part).num_rows


@contextmanager
def _opened(part: Path) -> Iterator[pq.ParquetFile]:
    """Yields a part. Raises DamagedPart where it cannot be read, also in the block."""
    try:
        name, files = in_arrow(part)
        with pq.ParquetFile(name, filesystem=files, page_checksum_verification=True) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise DamagedPart(f"{part}: must be a whole Parquet file, got {error}") from error


def _read(part: Path) -> pa.Table:
    with _opened(part) as file:
        return file.read()


def rows_in(run: Path, table: str) -> int:
    """Returns the number of rows in a table's part files, by their metadata. Raises DamagedPart, which names the
    file."""
    rows = 0
    for part in part_files(run, table):
        with _opened(part) as file:
            rows += file.metadata.num_rows
    return rows


def last_serial(run: Path, table: str) -> int:
    """Returns the largest serial number of a table's part files; -1 if there are none."""
    parts = part_files(run, table)
    return _serial(parts[-1]) if parts else -1


def _rewrite(run: Path, table: str, parts: list[Path], schema: pa.Schema, groups: Iterator[pa.Table]) -> None:
    """Replaces the part files of a table by one that holds the groups of rows."""
    # No part has this name: a reader that listed the parts before fails to open them, and reads no row twice.
    merged = run / table / f"{parts[0].stem.lstrip('.')[:6]}-{_serial(parts[-1]) + 1:06d}.parquet"
    written = merged.with_name(f".{merged.name}") if is_local(run) else merged
    with replacing(written) as file:
        _write_groups(file, schema, groups)
    remove(file for file in _listed(run, table) if file != written)
    if written != merged:
        os.replace(written, merged)


def _options(schema: pa.Schema) -> dict[str, Any]:
    """Returns how Parquet is written. Dictionaries are for texts alone: of numbers, they are larger and slower."""
    texts = [column.name for column in schema if pa.types.is_dictionary(column.type)]
    return {"compression": "zstd", "use_dictionary": texts, "write_page_checksum": True}


def _write_groups(file: Path, schema: pa.Schema, groups: Iterator[pa.Table]) -> None:
    with pq.ParquetWriter(file, schema, **_options(schema)) as writer:
        for group in groups:
            writer.write_table(group)


def _first(groups: Iterator[pa.Table], rows: int, run_id: str) -> Iterator[pa.Table]:
    """Yields the first rows of groups, as rows of the run with this id."""
    for group in groups:
        group = group.slice(0, rows)
        rows -= group.num_rows
        ids = pa.DictionaryArray.from_arrays(np.zeros(group.num_rows, np.int32), pa.array([run_id]))
        yield group.set_column(group.schema.get_field_index("run"), group.schema.field("run"), ids)
        if rows == 0:
            return


def _groups(parts: list[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yields the rows of parts in tables of about GROUP_ROWS rows, with null in columns that a part does not have."""
    held: list[pa.Table] = []
    rows = 0
    for part in parts:
        table = _read(part)
        for column in schema.names[table.num_columns :]:
            table = table.append_column(schema.field(column), pa.nulls(table.num_rows, pa.float64()))
        held.append(table)
        rows += table.num_rows
        if rows >= GROUP_ROWS or part is parts[-1]:
            yield pa.concat_tables(held).unify_dictionaries()
            held, rows = [], 0
