"""Reads the files of tables, with all checksums verified, and says which file is damaged."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from results.info import CURE, NotARun
from results.location import in_arrow
from results.schemas import TABLES, own_names

T = TypeVar("T")


class DamagedTable(NotARun):
    """Raised for a table, or a file of it, that cannot be read or lacks rows."""

    def __init__(self, place: Path, what: str) -> None:
        super().__init__(f"{place}: must {what}; {CURE}")


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
