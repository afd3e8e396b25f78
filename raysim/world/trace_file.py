"""Traces that users bring: tables of numbers in CSV or Parquet files, and what is told of wrong ones."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from raysim.parts.rng import Stream
from results.location import in_arrow, location, require_file, why

Assign = Literal["client", "drawn", "in_order"]


class Owners(NamedTuple):
    """Which entry of a trace each client has."""

    entries: int  # how many there are
    places: dict[int, int] | None  # the place of each client's entry; None if entries are drawn

    @classmethod
    def by(cls, assign: Assign, clients: Iterable[int]) -> Self:
        """Returns who has which. clients: that which the trace names for each entry."""
        places = {client: place for place, client in enumerate(clients)}
        if assign == "in_order":
            return cls(len(places), {place: place for place in range(len(places))})
        return cls(len(places), places if assign == "client" else None)

    def entry(self, client: int, stream: Stream) -> int:
        """Returns the place of a client's entry. stream: its draws."""
        return int(stream(client).integers(self.entries)) if self.places is None else self.places[client]

    def check(self, path: str, entry: str, clients: int) -> None:
        """Raises ValueError if one of so many clients has no entry. path: the trace. entry: what messages call one."""
        if self.places is None or not (without := [client for client in range(clients) if client not in self.places]):
            return
        raise ValueError(
            f"{path}: must hold {entry} for each of {clients} clients, got none for {len(without)} of them, "
            f"such as {without[:3]}; add rows, or set `assign: drawn`"
        )


@dataclass(frozen=True)
class TraceFile:
    """The content of a trace: columns of equal length, by name."""

    path: str
    columns: dict[str, Sequence[Any]]
    lines: Sequence[int]  # where each row is: its line in a CSV file, its number from 0 in a Parquet file
    unit: str  # of `lines`: "line" or "row"

    def __len__(self) -> int:
        return len(self.lines)

    def require(self, *names: str) -> None:
        """Raises ValueError if one of these columns is missing, or the file has no rows."""
        if missing := [name for name in names if name not in self.columns]:
            raise ValueError(
                f"{self.path}: must have the columns {', '.join(names)}, got {', '.join(self.columns)}, without "
                f"{', '.join(missing)}; add or rename columns"
            )
        if not len(self):
            raise ValueError(f"{self.path}: must hold at least one row below the names of its columns, got none")

    def numbers(self, name: str, *, positive: bool = False, negative: bool = False) -> NDArray[np.float64]:
        """Returns a column as float64 (rows,). Raises ValueError at the first that is not a number from 0 on.

        positive: whether 0 is refused, too. negative: whether numbers below 0 are allowed.
        """
        values = np.empty(len(self))
        for place, value in enumerate(self.columns[name]):
            try:
                values[place] = float(value)
            except (TypeError, ValueError):
                values[place] = np.nan
        wrong = ~np.isfinite(values) | ((values < 0) & (not negative)) | (positive & (values == 0))
        if wrong.any():
            must = "a number" if negative else "a number above 0" if positive else "a number of at least 0"
            raise self.error(int(wrong.argmax()), name, must)
        return values

    def clients(self) -> list[int]:
        """Returns the column `client` as integers. Raises ValueError at the first one that is no client's number."""
        values = self.numbers("client")
        if (wrong := values != np.floor(values)).any():
            raise self.error(int(wrong.argmax()), "client", "a client's number, 0, 1, ...")
        return [int(value) for value in values]

    def where(self, row: int) -> str:
        """Says where a row is, such as `line 7`. row: its place in the columns."""
        return f"{self.unit} {self.lines[row]}"

    def error(self, row: int, name: str, must: str) -> ValueError:
        """Returns the error that a value is wrong. must: what it must be."""
        return ValueError(f"{self.path}, {self.where(row)}: {name} must be {must}, got {self.columns[name][row]!r}")


def read_trace(path: str) -> TraceFile:
    """Reads a CSV file, or a Parquet file if its name ends in .parquet. Relative paths start at the working directory.

    Raises ValueError, which names the file, if it cannot be read.
    """
    try:
        file = require_file(location(path).expanduser())
        return _parquet(path, file) if file.suffix == ".parquet" else _csv(path, file)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {why(error)}; correct the path") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: must be CSV in UTF-8, or Parquet with a name that ends in .parquet") from error


def _csv(path: str, file: Path) -> TraceFile:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        reader = csv.reader(opened, skipinitialspace=True)
        names = [name.strip() for name in next(reader, [])]
        rows, lines = [], []
        for row in reader:
            if not row:  # an empty line
                continue
            if len(row) != len(names):
                raise ValueError(
                    f"{path}, line {reader.line_num}: must have {len(names)} values, for {', '.join(names)}, got "
                    f"{len(row)}"
                )
            rows.append(row)
            lines.append(reader.line_num)
    columns: list[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return TraceFile(path, _named(path, names, columns), lines, "line")


def _parquet(path: str, file: Path) -> TraceFile:
    try:
        name, system = in_arrow(file)
        table = pq.read_table(name, filesystem=system)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: must be a Parquet file, got one that cannot be read: {error}") from error
    columns = [column.to_pylist() for column in table.columns]
    return TraceFile(path, _named(path, table.column_names, columns), range(table.num_rows), "row")


def _named(path: str, names: list[str], columns: Sequence[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: must have each column once, got {', '.join(twice)} more than once; rename one")
    return dict(zip(names, columns, strict=True))
