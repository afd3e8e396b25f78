"""Decides when a run makes a checkpoint, and writes it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import ref  # so that a value that is replaced is not kept in memory until the next checkpoint

from actors import Pool, Value
from raysim.engine.checkpoint import FOLDER, Checkpoint, write_records
from raysim.engine.progress import Happened, Mark
from raysim.engine.recorder import Recorder
from raysim.engine.simulation import Change, Committed, Kept, Simulation
from raysim.scenario import Scenario

RECORDS = "records-[0-9][0-9][0-9][0-9][0-9][0-9].safetensors"
SHARE = 0.02  # largest part of a run's time that checkpoints may take, unless they are asked for
BYTES_PER_S = 1e8  # bytes a second at which the first checkpoint is expected to be written
FILE_BYTES = 1 << 29  # bytes after which a new file of records is begun
WASTE = 0.5  # the records of a file are written again if less than this share of them is needed


class Saver:
    """Makes the checkpoints of a run. The engine's loop tells it of each happening that is written."""

    def __init__(
        self,
        folder: Path,
        scenario: Scenario,
        pool: Pool,
        recorder: Recorder,
        simulation: Simulation[Any, Any],
        checkpoint: Checkpoint | None,
        until: int | None = None,
    ) -> None:
        """folder: the run's. checkpoint: the one that the run continues from; None if it starts. until: the version of
        the model, or the number of rounds of peers, after which the run stops with a checkpoint."""
        self._folder = folder / FOLDER
        self._pool, self._recorder, self._simulation = pool, recorder, simulation
        self._wanted = scenario.run.checkpoint
        self._happenings = checkpoint.happenings if checkpoint else 0
        self._until = until
        self.reached = False  # whether that version is there, and the run must stop
        self._last: Happened | None = None  # the last happening that was written since the start
        self._unwritten: Checkpoint | None = None  # the last one, until all rows are in files
        self._whole = True  # False while a happening is being written
        self._open = True  # whether what was written would be the same if the run were longer
        self._files = _Files(self._folder, checkpoint, simulation.committed)
        self._saved_s = simulation.stopwatch.seconds  # when the last one was made, or the run started
        self._record_s = 4 * simulation.described.parameters / BYTES_PER_S  # how long writing a record takes
        self._next_s = self._saved_s + (self._wanted.every_s or 0.0)
        self._next_round = (checkpoint.round + 1 if checkpoint else 0) + (self._wanted.every_rounds or 0)

    def before(self, *, last: bool) -> None:
        """Called before a happening is written. last: whether the happening would differ in a longer run."""
        if last:
            self.end()
        self._whole = False

    def end(self) -> None:
        """Called when what is written from now on would differ in a longer run. Makes the run's last checkpoint, which
        `close` writes: rows that are flushed only once make one file for each table."""
        if self._open:
            wanted = self._wanted.at_end
            if wanted is True or (wanted == "auto" and self._is_cheap()):
                self.save(flushed=False)
            self._open = False

    def close(self) -> None:
        """Called when all rows are in files. Writes the run's last checkpoint, if `end` made one."""
        if self._unwritten:
            self._write(self._unwritten)
            self._unwritten = None

    def after(self, happening: Happened, change: Change, mark: Mark | None, *, best: bool = False) -> None:
        """Called after a happening was written. change: what it changes. mark: given if it ends a round. best: whether
        its evaluation is the best so far."""
        self._whole = True
        self._simulation.committed.apply(change)
        if best:
            self._simulation.committed.keep_best(self._simulation.model_keys())
        if not self._open:
            return
        self._happenings += 1
        self._last = happening
        self.reached = self._until is not None and happening.version >= self._until
        if self.reached or self._is_due(mark):
            self.save()

    def _is_due(self, mark: Mark | None) -> bool:
        seconds = self._simulation.stopwatch.seconds
        by_time = self._wanted.every_s is not None and seconds >= self._next_s
        by_rounds = self._wanted.every_rounds is not None and mark is not None and mark.round >= self._next_round
        return by_time or by_rounds

    def _is_cheap(self) -> bool:
        """Whether a checkpoint would take a small part of the time since the last one, as estimated from its size."""
        records = self._files.missing(self._simulation.committed)
        return len(records) * self._record_s <= SHARE * (self._simulation.stopwatch.seconds - self._saved_s)

    def save(self, *, flushed: bool = True) -> None:
        """Makes a checkpoint of what was written so far. flushed: whether it is written now, and rows before it.

        Does nothing if nothing was written since the last one, at the end of the run, or if the run was interrupted
        while it wrote rows.
        """
        if self._last is None or not self._open or not self._whole:
            return
        stopwatch, committed = self._simulation.stopwatch, self._simulation.committed
        began, happened = stopwatch.seconds, self._last
        for kept in committed.records.values():
            while kept.value.job is not None:
                self._pool.wait()
        added = self._files.add(self._pool, committed)
        checkpoint = Checkpoint(
            folder=self._folder,
            happenings=self._happenings,
            version=happened.version,
            round=happened.round,
            virtual_time=happened.time,
            seconds=began,
            rows=self._recorder.writer.rows,
            totals=dict(self._recorder.totals),
            memory={"recorder": self._recorder.memory(), "simulation": self._simulation.memory()},
            files=self._files.index(committed),
            digests=self._files.digests,
        )
        if flushed:
            self._recorder.writer.flush()
            self._write(checkpoint)
        else:
            self._unwritten = checkpoint
        self._saved_s = stopwatch.seconds
        took = self._saved_s - began
        self._record_s = took / added if added else self._record_s
        self._next_s = self._saved_s + max(self._wanted.every_s or 0.0, took / SHARE)
        self._next_round = happened.round + 1 + (self._wanted.every_rounds or 0)
        self._last = None

    def _write(self, checkpoint: Checkpoint) -> None:
        checkpoint.write()
        self._files.delete_old()


class _Files:
    """The files of records of a run's checkpoint."""

    def __init__(self, folder: Path, checkpoint: Checkpoint | None, committed: Committed) -> None:
        self._folder = folder
        self.digests = dict(checkpoint.digests) if checkpoint else {}  # by name of the file
        self._where: dict[str, tuple[ref[Value[Any]], str]] = {}  # by key: the value written last, and its file
        for key, (file, _) in (checkpoint.files if checkpoint else {}).items():
            self._where[key] = ref(committed.records[key].value), file
        self._held = Counter(file for _, file in self._where.values())  # by file: how many records it was written with

    def missing(self, committed: Committed) -> list[str]:
        """Returns the keys to write: records that no file holds, and records in files that are mostly stale."""
        records = committed.records
        same = {k: file for k, (value, file) in self._where.items() if k in records and value() is records[k].value}
        needed = Counter(same.values())
        wasteful = {file for file, count in needed.items() if count < WASTE * self._held[file]}
        return [key for key in records if same.get(key) is None or same[key] in wasteful]

    def add(self, pool: Pool, committed: Committed) -> int:
        """Writes the missing records, and returns how many there were."""
        records, missing = committed.records, self.missing(committed)
        for keys, content in _pieces(pool, records, missing):
            name = f"records-{self._next_number():06d}.safetensors"
            self.digests[name] = write_records(self._folder / name, content)
            self._held[name] = len(keys)
            self._where.update({key: (ref(records[key].value), name) for key in keys})
        self._where = {key: self._where[key] for key in records}
        return len(missing)

    def _next_number(self) -> int:
        return 1 + max((int(path.stem.split("-")[1]) for path in self._folder.glob(RECORDS)), default=0)

    def index(self, committed: Committed) -> dict[str, tuple[str, Any]]:
        """Returns the file and the note of each record, by key. Forgets files that hold none of them."""
        used = {file for _, file in self._where.values()}
        self.digests = {name: digest for name, digest in self.digests.items() if name in used}
        self._held = Counter({name: number for name, number in self._held.items() if name in used})
        notes = {key: kept.note() if kept.note else None for key, kept in committed.records.items()}
        return {key: (file, notes[key]) for key, (_, file) in self._where.items()}

    def delete_old(self) -> None:
        """Deletes the files that the checkpoint does not refer to."""
        for path in (*self._folder.glob(RECORDS), *self._folder.glob(".*.tmp")):
            if path.name not in self.digests:
                path.unlink(missing_ok=True)


def _pieces(pool: Pool, records: dict[str, Kept], keys: list[str]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yields records in pieces that are not too large for one file: their keys, and their content by key."""
    piece: dict[str, Any] = {}
    size = 0
    for key in keys:
        piece[key] = records[key].record_in(pool.get(records[key].value))
        size += sum(array.nbytes for array in piece[key].values())
        if size >= FILE_BYTES:
            yield list(piece), piece
            piece, size = {}, 0
    if piece:
        yield list(piece), piece
