"""The base of trackers, which send a run's metrics to a service or to files that it reads: one number for each metric
and round."""

import hashlib
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from operator import itemgetter
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
from pydantic import PrivateAttr

from raysim.engine.checkpoint import Checkpoint
from raysim.engine.progress import Progress
from raysim.observers.observer import Observer, RunBegin, RunEnd
from results import Run
from results.columns import is_wall
from results.readings import WHAT, over_members
from results.schemas import TABLES, columns_of

# The tables that points are made of, each with the columns that tell a round's rows apart.
_KEYS = {"evaluations": ("subject", "member", "split", "metric"), "steps": ("step",)}
_PLURAL = {"client": "clients", "peer": "peers", "unseen": "unseen"}  # by subject, of those with several members
_EVALUATED = pa.schema([TABLES["evaluations"].field(name) for name in (*WHAT, "value")])
# How the values of a column of `steps` become one number for the round. Of others, it is the mean or, where their name
# ends so, the maximum.
_OF_ROUND: dict[str, Callable[[list[float]], float]] = {
    **dict.fromkeys(("used", "discarded", "samples"), sum),
    **dict.fromkeys(("in_flight", "cache_bytes"), itemgetter(-1)),
}
# Those whose sum since the run began is sent: bytes and operations.
_SO_FAR = {c.name for c in columns_of("steps") if c.unit in ("bytes", "floating-point operations")} - {"cache_bytes"}
_NO_METRIC = {"run", "step", "round", "virtual_time", *(c.name for c in TABLES["steps"] if is_wall(c))}


class RoundPoint(NamedTuple):
    """The metrics of a round, by name."""

    round: int  # counted from 0, as in the tables
    virtual_time: float  # of the last of the round's rows
    metrics: dict[str, float]


class Points:
    """Takes rows, and makes a point of each round that is over.

    Metrics of the global model are named as `test/accuracy`; those of clients as `clients/test/accuracy`, their
    unweighted mean, with `_min` and `_max` for the extremes; columns of the table `steps` as `steps/used`. What is null
    is left out, and so is real time. Rows that come again, because a run continues from a checkpoint, count once.
    """

    def __init__(self) -> None:
        self._rows: dict[int, dict[str, dict[Any, Mapping[str, Any]]]] = {}  # by round, table and key
        self._so_far: dict[str, float] = defaultdict(float)
        self._done = -1  # the last round that became a point

    def add(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Takes rows of a table, by column, in the order of the table."""
        for row in rows:
            if row["round"] > self._done:
                of_round = self._rows.setdefault(row["round"], {name: {} for name in _KEYS})
                of_round[table][tuple(row.get(name) for name in _KEYS[table])] = row

    def take(self, until: int | None) -> Iterator[RoundPoint]:
        """Yields the points of the rounds before `until`, or of all rounds, that were not yielded before."""
        for round in sorted(self._rows):
            if until is None or round < until:
                self._done, of_round = round, self._rows.pop(round)
                evaluated, stepped = (list(of_round[table].values()) for table in _KEYS)
                time = max(row["virtual_time"] for row in (*evaluated, *stepped))
                yield RoundPoint(round, time, dict([*_evaluated(evaluated), *self._stepped(stepped)]))

    def _stepped(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
        """Yields the metrics of a round's server steps, or of a round of peers."""
        for column in dict.fromkeys(name for row in rows for name in row if name not in _NO_METRIC):
            values = [row[column] for row in rows if row.get(column) is not None]
            if values and column in _SO_FAR:
                self._so_far[column] += sum(values)
                yield f"steps/{column}", float(self._so_far[column])
            elif values:
                of_round = _OF_ROUND.get(column, max if column.endswith("_max") else fmean)
                yield f"steps/{column}", float(of_round(values))


def _evaluated(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """Yields the metrics of a round's evaluations."""
    for row in over_members(pa.Table.from_pylist([*map(dict, rows)], _EVALUATED)).to_pylist():
        subject, name = row["subject"], f"{row['split']}/{row['metric']}"
        if row["value"] is None:
            continue
        # Of peers together, extremes are separate metrics.
        yield name if subject == "global" else f"{_PLURAL.get(subject, subject)}/{name}", row["value"]
        if subject in _PLURAL:
            yield f"{_PLURAL[subject]}/{name}_min", row["lowest"]
            yield f"{_PLURAL[subject]}/{name}_max", row["highest"]


class Tracker(Observer):
    """Sends the scenario as parameters, and all metrics by round.

    A point of a round goes out when the round is over. A resumed run is continued: what it has sent is not sent
    again. A subclass adds its `name`, and says how to `open` a run, `log` a point and `close` the run.
    """

    library: ClassVar[str | None] = None
    """The module that it imports, if that belongs to an optional package."""
    package: ClassVar[str] = ""
    """What `pip install` calls that package."""

    _points: Points = PrivateAttr(default_factory=Points)
    _from: int = 0  # the first round of which it sends a point

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(_KEYS)

    def problems(self) -> Iterator[str]:
        if self.library and find_spec(self.library) is None:
            yield f"{self.title} needs the package {self.package}, which is not installed; pip install '{self.package}'"

    @abstractmethod
    def open(self, run: RunBegin) -> int | None:
        """Begins to send a run, or continues with it. Returns the last round of which it has a point; None if none."""

    @abstractmethod
    def log(self, point: RoundPoint) -> None:
        """Sends a point. Points come in the order of their rounds."""

    @abstractmethod
    def close(self, end: RunEnd) -> None:
        """Ends the run."""

    def begin(self, run: RunBegin) -> None:
        self._points = Points()
        self._from = self.open(run) or 0
        if (run.steps or run.round) and (checkpoint := Checkpoint.read(run.folder)):  # what was written before it
            for table in _KEYS:
                rows = Run(run.folder).table(table).slice(0, checkpoint.rows.get(table, 0))
                self._points.add(table, rows.to_pylist())
        self._send(run.round)

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        self._points.add(table, rows)

    def progress(self, progress: Progress) -> None:
        self._send(progress.round)

    def end(self, end: RunEnd) -> None:
        try:
            self._send(None)
        finally:
            self.close(end)

    def _send(self, until: int | None) -> None:
        for point in self._points.take(until):
            if point.round >= self._from:
                self.log(point)


def title(run: RunBegin) -> str:
    """Returns the name by which people know a run: in a sweep, by what tells it from the others, else its id."""
    return run.label if run.sweep else run.run


def identity(run: RunBegin) -> str:
    """Returns a short text that is the same whenever the run continues, and for no other run."""
    place = hashlib.sha256(str(run.folder.resolve()).encode()).hexdigest()
    return f"{run.run[:40]}-{place[:8]}"


def outcome(end: RunEnd) -> dict[str, str]:
    """Returns how a run ended, as texts: its status, why it ended, and the digest of its model and tables."""
    digest = (end.info.get("digest") or {}).get("run")
    return {"status": end.status} | ({"why": end.why} if end.why else {}) | ({"digest": digest} if digest else {})
