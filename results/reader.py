"""Reads the folder of a run, whether the run is over, under way or was killed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from results.info import CURE, DamagedTable, NotARun, Status, ended_by, read_info, state, wrong_info
from results.keys import Value, flatten, with_later
from results.location import location
from results.schemas import TABLES, dictionary, require
from results.tables import again, check_schema, part_files, read_files, rows_in, schema_of
from results.texts import as_word

if TYPE_CHECKING:
    import pandas as pd

_UNDER_WAY = (Status.RUNNING, Status.FORKING)  # of runs that continue, or were killed
SILENT = timedelta(minutes=10)  # without a write, after which a run on another machine was probably killed


class NoRuns(NotARun):
    """Raised for a folder that holds no run, at least not yet."""


class Run:
    """A run's folder.

    Tables are read each time that they are asked for, so those of a run under way grow; `info` is read once.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = location(folder)

    @cached_property
    def info(self) -> dict[str, Any]:
        """The content of run.json. Raises NotARun where there is no such file, or it is damaged."""
        info, path = read_info(self.folder), self.folder / "run.json"
        if wrong := wrong_info(info):
            raise NotARun("\n".join(f"{path}: {problem}; {CURE}" for problem in wrong))
        return info

    @property
    def id(self) -> str:
        """The run's id, which is in every row of its tables."""
        return str(self.info.get("run", self.folder.name))

    @property
    def status(self) -> Status:
        """The status in run.json: running, forking, finished, diverged, stopped, failed, interrupted or dry.

        A killed run keeps the status running, or forking; `standing` also looks whether its process still lives.
        """
        return Status(self.info.get("status"))

    @property
    def over(self) -> bool:
        """Whether it finished."""
        return self.status is Status.FINISHED

    @property
    def diverged(self) -> str | None:
        """Says what was not finite first, and when; None if all was finite."""
        found = self.info.get("diverged")
        if not found:
            return None
        return f"{found['what']} was not finite in round {found['round']} (model version {found['version']})"

    @property
    def last_written(self) -> datetime:
        """When the run last wrote to a file, in UTC. A run that was killed writes nothing any more."""
        files = [self.folder / "run.json", *(file for name in TABLES for file in self.files(name)[-1:])]
        return datetime.fromtimestamp(max(file.stat().st_mtime for file in files if file.exists()), UTC)

    @property
    def standing(self) -> Status:
        """The status, except that a run that says running or forking is "killed" if its process is gone.

        It is "killed?" if that process is on another machine, and the run has written nothing for ten minutes.
        """
        if self.status not in _UNDER_WAY:
            return self.status
        found = state(self.info.get("holder"))
        if found == "unknown":
            return Status.MAYBE_KILLED if datetime.now(UTC) - self.last_written > SILENT else self.status
        return self.status if found == "alive" else Status.KILLED

    @property
    def note(self) -> str | None:
        """A remark on a run that is under way or was killed; None for all others."""
        standing, held = self.standing, self.info.get("holder") or {}
        written = f"last written {self.last_written:%Y-%m-%d %H:%M:%S} UTC"
        resume = "fork again" if self.status == "forking" else f"continue with `raysim resume {as_word(self.folder)}`"
        if standing == "killed":
            return f"its process is gone, {written}; {resume}"
        if self.status not in _UNDER_WAY:
            return None
        if standing == "killed?":
            written = f"probably killed, {written}; if so, {resume}"
        if not held.get("host"):
            return written
        if state(held) == "alive":
            return f"by process {held.get('pid')}, {written}"
        return f"on {held['host']} (pid {held.get('pid')}), cannot tell from here, {written}"

    @property
    def ended_early(self) -> str | None:
        """Why it ended before a key of `run` ended it; None if it did not."""
        return None if ended_by(self.info) else self.info.get("ended_early")

    @property
    def why(self) -> str:
        """Why it failed or ended early, or what is known of one that is under way or was killed, in a line."""
        error = next(filter(str.strip, (self.info.get("error") or "").splitlines()), None)
        return error or self.ended_early or self.diverged or self.note or ""

    @property
    def keys(self) -> dict[str, Value]:
        """The values of the scenario by dotted path of their keys.

        A fork also has the run and the version that it is from, `forked_from.run` and `forked_from.version`, and the
        settings that it had before, such as `forked_from.before.local.lr`.
        """
        origin = flatten({"forked_from": self.info.get("forked_from") or {}})
        return with_later(flatten(self.info.get("scenario") or {})) | origin

    @property
    def history(self) -> str | None:
        """Says which run it is a fork of, and from which checkpoints it was resumed; None if neither holds."""
        told = []
        if origin := self.info.get("forked_from"):
            told.append(f"fork of {origin['run']} from version {origin['version']}")
        match self.info.get("resumed"):
            case [*_, {"version": version}] as times:
                told.append(f"resumed {len(times)} times, last from version {version}")
        return ", ".join(told).replace("resumed 1 times, last", "resumed once,") or None

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        schema: pa.Schema | None = None,
    ) -> pa.Table:
        """Returns a table's rows in order of writing: those that pass the filter, with all columns or those named.

        schema: with own columns of other runs, too, which are null. The table is empty if no row was written. Raises
        ValueError for an unknown table or column, and NotARun, which names the file, where one is damaged.
        """
        require(name)

        def read() -> pa.Table:
            files = self.files(name)
            for file in files:  # a column of another name would be read as null
                check_schema(file, name)
            known = schema or schema_of(name, files)
            if unknown := [column for column in columns or () if column not in known.names]:
                raise ValueError(f"{name}: columns must be of {', '.join(known.names)}, got {unknown!r}")
            self.require_rows(name)
            return read_files(files, known, None if columns is None else list(columns), filter)

        return again(read)

    def require_rows(self, name: str) -> None:
        """Raises DamagedTable if a run that has ended does not hold as many rows of a table as run.json counts."""
        try:
            counted = self.info.get("rows", {}).get(name)
        except NotARun:  # named columns can be read without it
            return
        if counted is None or self.status in _UNDER_WAY:
            return
        try:
            found = rows_in(self.folder, name)
        except DamagedTable:  # whoever reads it is told
            return
        if found != counted:
            text = f"hold the {counted} rows that run.json counts, got {found}"
            raise DamagedTable(self.folder / name, text)

    def pandas(self, name: str) -> pd.DataFrame:
        """Returns a table as a pandas data frame, with texts as categories.

        Its `attrs` say what its columns are: `frame.attrs["columns"]["staleness"]` is what the column means,
        and `frame.attrs["units"]["staleness"]` its unit.
        """
        frame: pd.DataFrame = self.table(name).to_pandas()
        frame.attrs = dictionary(name)
        return frame

    def files(self, name: str) -> list[Path]:
        """Returns the Parquet files that hold a table, in order of writing; none if no row was written."""
        return part_files(self.folder, name)


def open_run(folder: str | os.PathLike[str]) -> Run:
    """Opens the run in a folder.

    Raises NotARun where run.json is missing or damaged, or the columns of a table are not this version's.
    """
    run = Run(folder)
    run.info  # noqa: B018 - reading it checks it
    for name in TABLES:
        for file in run.files(name)[:1]:
            check_schema(file, name)
    return run


def opened(folder: Path) -> Run | NotARun:
    """Opens the run in a folder, or returns what is wrong with its run.json."""
    run = Run(folder)
    try:
        run.info  # noqa: B018 - reading it checks it
    except NotARun as error:
        return error
    return run


def newest(name: Path, *, begins: bool = False) -> Path:
    """Returns the folder of the newest run of a name, such as runs/quickstart.

    name: below a folder that holds the run at any depth; without one, below runs/. A folder that is there is returned
    as it is, and so is a name that no run has. begins: whether the folder's name may be one that only begins so. Raises
    NotARun where runs of several names do.
    """
    places = [name] if name.is_absolute() or len(name.parts) > 1 else [name, Path("runs") / name]
    if there := [place for place in places if place.exists()]:
        return there[0]
    files = places[-1].parent.rglob("run.json")
    found = [opened(file.parent) for file in files if file.parent.name.startswith(name.name)]
    runs = [run for run in found if isinstance(run, Run)]
    runs = [run for run in runs if run.info.get("name") == name.name] or (runs if begins else [])
    if len(names := sorted({str(run.info.get("name")) for run in runs})) > 1:
        text = f"must be the beginning of one run's name, got that of {', '.join(names)}"
        raise NotARun(f"{name}: {text}; write more of it")
    return max(runs, key=lambda run: (run.info.get("started_at") or "", run.folder.name)).folder if runs else name
