"""The part files of a table. A reader always sees whole rows, and each once, even if the writer was killed.

A part gets its final name only when it is complete. Compaction builds the new folder of a table beside the old one,
under a hidden name, and swaps the two by two renames, so no folder ever holds a row twice. If the writer is killed
before the swap, the old folder is whole; if it is killed after the swap, the new one is. If it is killed between the
renames, the old folder is whole under a hidden name, where `part_files` finds it.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from results.disk import writing

GROUP_ROWS = 1 << 20  # rows of a row group in a compacted file; a group may hold a few more


def part_files(run: Path, table: str) -> list[Path]:
    """Returns the files that hold a table's rows, in order of writing; none if no row was written."""
    folder = run / table
    for candidate in (folder, _old(folder), folder):  # it looks at the first again, in case a swap ended in between
        if candidate.is_dir():
            return sorted(candidate.glob("*.parquet"))
    return []


def write_part(run: Path, table: str, serial: int, rows: pa.Table) -> None:
    """Writes rows as the part file with this serial number."""
    path = run / table / f"{serial:06d}.parquet"
    hidden = hidden_name(path)
    with writing(path.parent):
        try:
            path.parent.mkdir(exist_ok=True)
            pq.write_table(rows, hidden, compression="zstd")
            os.replace(hidden, path)
        except OSError:
            hidden.unlink(missing_ok=True)  # so that run.json finds room on a full disk
            raise


def compact(run: Path, table: str, schema: pa.Schema) -> None:
    """Merges a table's part files into one, with the rows in the same order.

    Where there is no room for that, the parts stay as they are, which hold the same rows.
    """
    folder, parts = run / table, part_files(run, table)
    if len(parts) < 2:
        return
    new = folder.with_name(f".{table}.new")
    new.mkdir()
    # No part has this name: a reader that listed the parts before the swap fails to open them, and reads no row twice.
    merged = new / f"{parts[0].stem[:6]}-{parts[-1].stem[-6:]}.parquet"
    try:
        with pq.ParquetWriter(merged, schema, compression="zstd") as file:
            for group in _groups(parts):
                file.write_table(group)
    except OSError:
        shutil.rmtree(new)
        return
    os.rename(folder, _old(folder))
    os.rename(new, folder)
    shutil.rmtree(_old(folder))


def hidden_name(path: Path) -> Path:
    """Returns where to write a file before it gets its name.

    That is beside it: a rename is atomic within one file system only.
    """
    return path.with_name(f".{path.name}.tmp")


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _groups(parts: list[Path]) -> Iterator[pa.Table]:
    """Yields the rows of parts in tables of about GROUP_ROWS rows."""
    held: list[pa.Table] = []
    rows = 0
    for part in parts:
        table = pq.ParquetFile(part).read()
        held.append(table)
        rows += table.num_rows
        if rows >= GROUP_ROWS or part is parts[-1]:
            yield pa.concat_tables(held).unify_dictionaries()
            held, rows = [], 0
