"""The part files of a table. A reader always sees whole rows, and each once, even if the writer was killed. All
checksums are verified, and errors say which file is damaged.

A part gets its final name only when it is complete. Compaction writes the merged file beside the parts, removes them,
and then gives the merged file its final name: until then it is hidden, so that other programs that list the folder
never read a row twice. The name of a merged file says which parts it holds, and `part_files` leaves these out.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from results.disk import replacing, writing
from results.info import DamagedTable, NotARun
from results.location import in_arrow
from results.schemas import OWN, TABLES, own_names, with_own

T = TypeVar("T")

_NAME = re.compile(r"(\.?\d{6}-)?\d{6}\.parquet")  # of parts, and of merged files, also hidden ones
FEW = 1000  # rows for which the codec's start would take as long as the rest
GROUP_ROWS = 1 << 18  # about how many rows a row group of a merged file has; they are in memory together


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turns errors of a library that reads a file into DamagedTable. One that is gone is FileNotFoundError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):  # it is this process that has no room
            raise
        what = f"be a whole Parquet file, got {' '.join(str(error).split())}"
        raise DamagedTable(file, what) from error


@contextmanager
def opened(file: Path) -> Iterator[pq.ParquetFile]:
    """Yields a file of a table. Raises DamagedTable where it cannot be read, also in the block."""
    name, system = in_arrow(file)
    with reading(file), pq.ParquetFile(name, filesystem=system, page_checksum_verification=True) as found:
        yield found


def check_schema(file: Path, name: str) -> tuple[str, ...]:
    """Checks that a file holds this version's columns of a table. Returns the names of the algorithm's own in it.

    Raises NotARun where it does not, or is not a Parquet file, and FileNotFoundError where the file is gone.
    """
    wanted = TABLES[name]
    with opened(file) as content:
        found = content.schema_arrow
        own = own_names(name, found)
    if [(c.name, c.type) for c in found if c.name not in own] == [(c.name, c.type) for c in wanted]:
        return own
    others = sorted({*wanted.names} ^ {c.name for c in found if c.name not in own})
    raise NotARun(
        f"{file}: must have this version's columns of {name}, but differs in {', '.join(others) or 'types or order'}; "
        "read it with the version that run.json names, or run the scenario again"
    )


def read_files(
    files: Sequence[Path], schema: pa.Schema, columns: list[str] | None, filter: pc.Expression | None
) -> pa.Table:
    """Returns rows of a table with this schema from these files of a run.

    Raises FileNotFoundError where a file is gone, and DamagedTable, which names the file, where one cannot be read.
    """
    import pyarrow.dataset as ds  # loads pandas

    verified = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    )

    def read(some: Sequence[Path]) -> pa.Table:
        system = in_arrow(some[0])[1] if some else None
        return ds.dataset([in_arrow(file)[0] for file in some], schema, verified, system).to_table(columns, filter)

    try:
        return read(files)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException):  # the error does not name the file
        for file in files:
            with reading(file):
                read([file])
        raise


def again(read: Callable[[], T]) -> T:
    """Reads a table, once more if a run that is under way has merged its part files in between."""
    try:
        return read()
    except FileNotFoundError:
        return read()


def part_files(run: Path, table: str) -> list[Path]:
    """Returns the files that hold a table's rows, in order of writing; none if no row was written.

    Files with names that the writer does not give, such as "copy of 000001.parquet", are left out, and so are those
    whose rows the last merged file holds.
    """
    files = sorted(_listed(run, table), key=lambda file: (_serial(file), file.name[0] != "."))
    merged = next((file for file in reversed(files) if "-" in file.name), None)
    return files if merged is None else [merged, *(file for file in files if _serial(file) > _serial(merged))]


def _listed(run: Path, table: str) -> list[Path]:
    """Returns all parts of a table, listed twice: a file that gets another name meanwhile may be missed once."""
    found = dict.fromkeys(file for _ in range(2) for file in (run / table).glob("*.parquet"))
    return [file for file in found if _NAME.fullmatch(file.name)]


def _serial(file: Path) -> int:
    """Returns a part's serial number; for a merged file, one that is larger than those of the parts that it holds."""
    return int(file.stem[-6:])


def schema_of(table: str, files: Sequence[Path]) -> pa.Schema:
    """Returns the schema of a table's part files, in order of writing: later ones have all own columns of earlier."""
    if not files or table not in OWN:
        return with_own(table, ())
    with opened(files[-1]) as last:
        return with_own(table, own_names(table, last.schema_arrow))


def write_part(run: Path, table: str, serial: int, rows: pa.Table) -> None:
    """Writes rows as the part file with this serial number."""
    with replacing(run / table / f"{serial:06d}.parquet") as hidden:
        pq.write_table(rows, hidden, **_options(rows.schema) | ({"compression": "snappy"} if len(rows) < FEW else {}))


def compact(run: Path, table: str, schema: pa.Schema) -> None:
    """Merges a table's part files into one, with the rows in the same order.

    If a part is damaged, or if there is no room for the new file, the parts stay as they are.
    """
    parts = part_files(run, table)
    if len(parts) > 1:
        with suppress(DamagedTable, OSError):
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
            _remove(_listed(run, table))
        _remove((run / table).glob(".*.tmp"))
    yield from kept


def require_whole(run: Path, table: str, rows: int) -> None:
    """Raises DamagedTable, which names the file, if a table's first rows cannot be read or fail their checksums."""
    for part in part_files(run, table) if rows else ():
        if rows > 0:
            rows -= _read(part).num_rows


def rows_in(run: Path, table: str) -> int:
    """Returns the number of rows in a table's part files, by their metadata. Raises DamagedTable, which names the
    file."""
    rows = 0
    for part in part_files(run, table):
        with opened(part) as file:
            rows += file.metadata.num_rows
    return rows


def last_serial(run: Path, table: str) -> int:
    """Returns the largest serial number of a table's part files; -1 if there are none."""
    return max(map(_serial, part_files(run, table)), default=-1)


def _rewrite(run: Path, table: str, parts: list[Path], schema: pa.Schema, groups: Iterator[pa.Table]) -> None:
    """Replaces the part files of a table by one that holds the groups of rows."""
    # No part has this name: a reader that listed the parts before fails to open them, and reads no row twice.
    merged = run / table / f"{parts[0].stem.lstrip('.')[:6]}-{_serial(parts[-1]) + 1:06d}.parquet"
    hidden = merged.with_name(f".{merged.name}")
    with replacing(hidden) as file, pq.ParquetWriter(file, schema, **_options(schema)) as writer:
        for group in groups:
            writer.write_table(group)
    _remove(part for part in _listed(run, table) if part != hidden)
    hidden.rename(merged)


def _remove(files: Iterable[Path]) -> None:
    for file in list(files):
        file.unlink()


def _options(schema: pa.Schema) -> dict[str, Any]:
    """Returns how Parquet is written. Dictionaries are for texts alone: of numbers, they are larger and slower."""
    texts = [column.name for column in schema if pa.types.is_dictionary(column.type)]
    return {"compression": "zstd", "use_dictionary": texts, "write_page_checksum": True}


def _first(groups: Iterator[pa.Table], rows: int, run_id: str) -> Iterator[pa.Table]:
    """Yields the first rows of groups, as rows of the run with this id."""
    for group in groups:
        group = group.slice(0, rows)
        rows -= group.num_rows
        ids = pa.DictionaryArray.from_arrays(np.zeros(group.num_rows, np.int32), pa.array([run_id]))
        yield group.set_column(group.schema.get_field_index("run"), group.schema.field("run"), ids)
        if rows == 0:
            return


def _read(part: Path) -> pa.Table:
    with opened(part) as file:
        return file.read()


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
