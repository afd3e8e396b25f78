"""Checkpoints on disk: all that a run needs, besides its tables, to continue with the same bits.

The folder `checkpoint` of a run holds `checkpoint.json` and files of records, `records-<n>.safetensors`. A new
checkpoint writes only the records that have changed since the one before, and refers to the older files for the others.
It becomes the run's checkpoint when its `checkpoint.json` replaces the old one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter
from safetensors import safe_open
from safetensors.numpy import save

from raysim.engine.progress import Happened
from raysim.parts.errors import DamagedCheckpoint
from raysim.terms import Wire
from results.disk import replacing
from results.info import DamagedTable
from results.location import is_local, local_copy
from results.tables import require_whole, rows_in
from results.texts import quoted

HappenedT = TypeVar("HappenedT", bound=Happened)
FOLDER, INDEX = "checkpoint", "checkpoint.json"
_NAME = re.compile(r"records-[0-9]+\.safetensors")  # of files of records; others could lie anywhere


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read.

    happenings: how many happenings of the timeline were written by then. rows: how many rows each table had. totals and
    memory: what the recorder and the simulation remember, as plain data. files: by key, the file that holds a record,
    and the note beside it. digests: the SHA-256 of each file.
    """

    folder: Path
    happenings: int
    version: int  # server steps done by then; with peers, rounds
    round: int
    virtual_time: float
    seconds: float  # wall seconds of the run's timeline by then
    rows: dict[str, int]
    totals: dict[str, int]
    memory: dict[str, dict[str, Any]]
    files: dict[str, tuple[str, Any]]
    digests: dict[str, str]
    fetched: list[Any] = field(default_factory=list, compare=False, repr=False)  # by `fetch`

    @classmethod
    def read(cls, run: Path) -> Checkpoint | None:
        """Returns the checkpoint of the run in a folder, with its files checked; None if it has none.

        Raises DamagedCheckpoint, which names the file, if one is missing or was changed, or if a table has fewer rows
        than the checkpoint was made after. On an object store, the content of files is checked by `records`, which
        fetches them.
        """
        path = run / FOLDER / INDEX
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            found = TypeAdapter(cls).validate_json(json.dumps(content | {"folder": ""}), strict=True)
            checkpoint = replace(found, folder=path.parent)
            if strange := [name for name in checkpoint.digests if not _NAME.fullmatch(name)]:
                raise ValueError(f"it names {quoted(strange[0])}, which is not a file that raysim writes there")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedCheckpoint(_told(path, f"it cannot be read: {type(error).__name__}: {error}")) from None
        for name, digest in checkpoint.digests.items():
            file = path.parent / name
            if is_local(file):
                _require_same(file, file, digest)
            elif not file.exists():
                raise DamagedCheckpoint(_told(file, "it is not there"))
        checkpoint._require_rows()
        return checkpoint

    @property
    def spent(self) -> dict[str, float]:
        """What was spent by then, by key of `run.until`."""
        spent: dict[str, float] = self.memory["recorder"]["budget"]["spent"]
        return spent

    def _require_rows(self) -> None:
        run = self.folder.parent
        for table, rows in self.rows.items():
            with _telling_of_parts():
                found = rows_in(run, table)
            if found < rows:
                text = f"must hold the {rows} rows that the checkpoint counts on, got {found}"
                cure = f"copy its files again, or delete {self.folder} to let the run start again from its beginning"
                raise DamagedCheckpoint(f"{run / table}: {text}; {cure}")

    def write(self) -> None:
        """Makes this the run's checkpoint. Until all of it is on the disk, the old one stays."""
        names = ("happenings", "version", "round", "virtual_time", "seconds", "rows", "totals", "memory")
        content = {name: getattr(self, name) for name in (*names, "files", "digests")}
        write_durably(self.folder / INDEX, json.dumps(content).encode())

    def fetch(self) -> None:
        """Reads the records, which the next call of `records` returns, and the rows that the checkpoint counts on.

        Raises DamagedCheckpoint, as `read` does.
        """
        self.fetched[:] = [self.records()]
        for table, rows in self.rows.items():
            with _telling_of_parts():
                require_whole(self.folder.parent, table, rows)

    def records(self) -> dict[str, Wire]:
        """Returns all records by key. Each file is read once. Raises DamagedCheckpoint, as `read` does."""
        if self.fetched:
            fetched: dict[str, Wire] = self.fetched.pop()
            return fetched

        records: dict[str, Wire] = {key: {} for key in self.files}
        for name, digest in self.digests.items():
            with local_copy(self.folder / name) as copy:
                if not is_local(self.folder):
                    _require_same(self.folder / name, copy, digest)
                with safe_open(copy, framework="np") as file:
                    for entry in file.keys():  # noqa: SIM118 - it is not a dictionary
                        key, _, inner = entry.partition("|")
                        if self.files.get(key, ("",))[0] == name:
                            records[key][inner] = file.get_tensor(entry)
        return records


@contextmanager
def _telling_of_parts() -> Iterator[None]:
    try:
        yield
    except DamagedTable as error:
        raise DamagedCheckpoint(str(error)) from None


def skip(happenings: Iterator[HappenedT], checkpoint: Checkpoint) -> Iterator[HappenedT]:
    """Yields the happenings that were written before a checkpoint, so that the timeline continues after it.

    Raises DamagedCheckpoint if the timeline is then not where the checkpoint was made.
    """
    last = None
    for last in islice(happenings, checkpoint.happenings):
        yield last
    found = (last.version, last.round, last.time) if last else None
    if found != (wanted := (checkpoint.version, checkpoint.round, checkpoint.virtual_time)):
        raise DamagedCheckpoint(
            f"{checkpoint.folder / INDEX}: the timeline must come to (version, round, virtual time) {wanted} after "
            f"{checkpoint.happenings} happenings, as when the checkpoint was made, but comes to {found}; resume with "
            "the versions of raysim and numpy that run.json names"
        )


def write_records(path: Path, records: dict[str, Wire]) -> str:
    """Writes records by key as one safetensors file, and returns its SHA-256."""
    named = ((f"{key}|{name}", array) for key, record in records.items() for name, array in record.items())
    content = save({name: np.asarray(array, order="C") for name, array in named})
    write_durably(path, content)
    return hashlib.sha256(content).hexdigest()


def write_durably(path: Path, content: bytes) -> None:
    """Writes a file so that there is never a part of it under its name, even if the machine loses power.

    Raises CannotWrite if it cannot be written, such as on a full disk.
    """
    with replacing(path) as hidden, open(hidden, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def position(run: Path) -> tuple[int, int]:
    """Returns the version and the rounds of the checkpoint in a run's folder, unchecked; zeros if there is none."""
    try:
        content = json.loads((run / FOLDER / INDEX).read_text(encoding="utf-8"))
        return content["version"], content["round"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # resuming from it reports the damage
        return 0, 0


def _require_same(path: Path, copy: Path, digest: str) -> None:
    """Raises DamagedCheckpoint, which names the path, if its local copy is not a file with this SHA-256."""
    try:
        with open(copy, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DamagedCheckpoint(_told(path, f"it cannot be read: {error.strerror}")) from None
    if found != digest:
        raise DamagedCheckpoint(_told(path, "its content has changed since it was written"))


def _told(path: Path, what: str) -> str:
    return (
        f"{path}: must be as the run wrote it, but {what}; delete the folder {path.parent} to let the run start again "
        "from its beginning"
    )
