"""The base of trackers, which send a run's metrics to a service or to files that it reads."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from pydantic import PrivateAttr

from raysim.engine.checkpoint import Checkpoint
from raysim.engine.progress import Progress
from raysim.observers.observer import Observer, RunBegin, RunEnd
from raysim.observers.trackers.points import FROM, Points, RoundPoint
from results import Run
from results.keys import Value, flatten
from results.store import local_copy

FILES = ("run.json", "model.safetensors", "best.safetensors")  # of a run's folder, that a tracker keeps


class Tracker(Observer):
    """Sends the scenario as parameters, all metrics by round, and the final model.

    A point of a round goes out when the round is over. A run that goes on is gone on with: what it has sent is not sent
    again. A subclass adds its `name`, and says how to `open` a run, `log` a point and `close` the run.
    """

    library: ClassVar[str | None] = None
    """The module that it imports, if that belongs to an optional package."""
    package: ClassVar[str] = ""
    """What `pip install` calls that package."""

    model: bool = True
    """Whether the final model is sent, with run.json. Metrics and parameters always are."""

    _points: Points = PrivateAttr(default_factory=Points)
    _folder: Path = Path()
    _from: int = 0  # the first round of which it sends a point

    @property
    def tables(self) -> tuple[str, ...]:
        return FROM

    def problems(self) -> Iterator[str]:
        if self.library and find_spec(self.library) is None:
            yield f"{self.title} needs the package {self.package}, which is not installed; pip install '{self.package}'"

    @abstractmethod
    def open(self, run: RunBegin) -> int | None:
        """Begins to send a run, or goes on with it. Returns the last round of which it has a point; None if none."""

    @abstractmethod
    def log(self, point: RoundPoint) -> None:
        """Sends a point. Points come in the order of their rounds."""

    @abstractmethod
    def close(self, end: RunEnd, files: Sequence[Path]) -> None:
        """Ends the run. files: what is to be kept of it, on this machine."""

    def begin(self, run: RunBegin) -> None:
        self._folder, self._points = run.folder, Points()
        self._from = self.open(run) or 0
        for table, rows in _past(run):
            self._points.add(table, rows)
        self._send(run.round)

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        self._points.add(table, rows)

    def progress(self, progress: Progress) -> None:
        self._send(progress.round)

    def end(self, end: RunEnd) -> None:
        with ExitStack() as copies:
            try:
                self._send(None)
            finally:
                wanted = [self._folder / name for name in FILES] if self.model else []
                self.close(end, [copies.enter_context(local_copy(file)) for file in wanted if file.exists()])

    def _send(self, until: int | None) -> None:
        for point in self._points.take(until):
            if point.round >= self._from:
                self.log(point)


def parameters(run: RunBegin) -> dict[str, Value]:
    """Returns the scenario's values by dotted path."""
    return flatten(run.scenario)


def title(run: RunBegin) -> str:
    """Returns the name by which people know a run: in a sweep, by what tells it from the others, else its id."""
    return run.label if run.sweep else run.run


def identity(run: RunBegin) -> str:
    """Returns a short text that is the same whenever the run goes on, and for no other run."""
    place = hashlib.sha256(str(run.folder.resolve()).encode()).hexdigest()
    return f"{run.run[:40]}-{place[:8]}"


def outcome(end: RunEnd) -> dict[str, str]:
    """Returns how a run ended, as texts: its status, why it ended, and the digest of its model and tables."""
    digest = (end.info.get("digest") or {}).get("run")
    return {"status": end.status} | ({"why": end.why} if end.why else {}) | ({"digest": digest} if digest else {})


def _past(run: RunBegin) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields the rows that a run which goes on has written before its checkpoint."""
    if not run.steps and not run.round:
        return
    if checkpoint := Checkpoint.read(run.folder):
        for table in FROM:
            yield table, Run(run.folder).table(table).slice(0, checkpoint.rows.get(table, 0)).to_pylist()
