"""Links between peers that come and go: which edges of the topology messages can take at what time."""

import math
from abc import abstractmethod
from bisect import bisect_right
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from raysim.parts.part import OneOf, Part, Positive, Unit
from raysim.world.availability import times_over
from raysim.world.mixing import Graph
from raysim.world.trace_file import TraceFile, read_trace


class Links(Part):
    """Which edges are there at what virtual time, in seconds. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def up(self, graph: Graph, time: float) -> NDArray[np.bool_]:
        """Returns whether each edge of the graph is there, bool (edges,)."""

    @abstractmethod
    def next_change(self, time: float) -> float:
        """Returns when that may next change after the time; infinite if it never does."""

    def check(self, peers: int) -> None:
        """Raises ValueError if a file that it reads is wrong, or does not hold what so many peers need."""


class AllLinks(Links):
    """All edges of the topology are always there."""

    name: str = "always"

    def up(self, graph: Graph, time: float) -> NDArray[np.bool_]:
        return np.ones(len(graph.source), dtype=bool)

    def next_change(self, time: float) -> float:
        return math.inf


class _Intervals(NamedTuple):
    """The rows of a trace of links."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    changes: list[float]  # all times at which a link comes or goes, in order


class LinkTrace(Links):
    """Edges are there in the intervals of a trace, and only then.

    The file has a row for each interval, with the columns `source`, `target`, `from` and `to`: messages can go from
    `source` to `target` from `from` until just before `to`, in seconds. In undirected graphs, a row counts for both
    ways. Rows between peers that the topology does not connect have no effect.
    """

    name: str = "trace"
    path: Annotated[str, Field(examples=["contacts.csv"])]
    """File of the intervals: CSV, or Parquet with a name that ends in .parquet."""

    def reads(self) -> tuple[str, ...]:
        return (self.path,)

    def check(self, peers: int) -> None:
        trace = read_trace(self.path)
        trace.require("source", "target", "from", "to")
        for name in ("source", "target"):
            _require_peers(trace, name, peers)
        begin, end = trace.numbers("from"), trace.numbers("to")
        if (wrong := begin > end).any():
            row = int(wrong.argmax())
            raise trace.error(row, "to", f"at least `from`, {begin[row]:g}")

    @cached_property
    def intervals(self) -> _Intervals:
        """What the file holds. It is read once, and travels with the scenario to the timeline."""
        trace = read_trace(self.path)
        source, target = trace.numbers("source").astype(np.int64), trace.numbers("target").astype(np.int64)
        begin, end = trace.numbers("from"), trace.numbers("to")
        return _Intervals(source, target, begin, end, sorted({*begin.tolist(), *end.tolist()}))

    def up(self, graph: Graph, time: float) -> NDArray[np.bool_]:
        source, target, begin, end, _ = self.intervals
        there = (begin <= time) & (time < end)
        found = source[there] * graph.peers + target[there]
        if graph.undirected:
            found = np.concatenate([found, target[there] * graph.peers + source[there]])
        return np.isin(graph.source.astype(np.int64) * graph.peers + graph.target, found)

    def next_change(self, time: float) -> float:
        changes = self.intervals.changes
        place = bisect_right(changes, time)
        return changes[place] if place < len(changes) else math.inf


class Positions(Links):
    """Peers move, and edges are there between those that are near each other.

    The file has a row for each position, with the columns `peer`, `time` in seconds, `x` and `y` in metres. Between two
    of its rows, a peer moves in a straight line; before the first and after the last, it stands still.
    """

    name: str = "positions"
    path: Annotated[str, Field(examples=["positions.csv"])]
    """File of the positions: CSV, or Parquet with a name that ends in .parquet."""
    range_m: Annotated[Positive, Unit("m"), Field(examples=[100.0])]
    """Largest distance of two peers over which messages go."""
    every_s: Annotated[Positive, Unit("s")] = 1.0
    """Seconds of virtual time after which distances are looked at again."""

    def reads(self) -> tuple[str, ...]:
        return (self.path,)

    def check(self, peers: int) -> None:
        trace = read_trace(self.path)
        trace.require("peer", "time", "x", "y")
        _require_peers(trace, "peer", peers)
        trace.numbers("time")
        for name in ("x", "y"):
            trace.numbers(name, negative=True)
        if without := sorted(set(range(peers)) - set(trace.numbers("peer").astype(int).tolist())):
            text = f"must hold a position for each of {peers} peers, got none for {len(without)} of them"
            raise ValueError(f"{self.path}: {text}, such as {without[:3]}; add rows")

    @cached_property
    def ways(self) -> list[NDArray[np.float64]]:
        """The times and places of each peer, (3, rows) in order of time. They are read once."""
        trace = read_trace(self.path)
        places = [trace.numbers(name, negative=True) for name in ("time", "x", "y")]
        rows, owner = np.stack(places), trace.numbers("peer").astype(int)
        of_peers = (rows[:, owner == peer] for peer in range(int(owner.max()) + 1))
        return [way[:, way[0].argsort(kind="stable")] for way in of_peers]

    def up(self, graph: Graph, time: float) -> NDArray[np.bool_]:
        seen = times_over(self.every_s, time) * self.every_s
        at = np.array([[np.interp(seen, way[0], along) for along in way[1:]] for way in self.ways])
        apart = at[graph.source] - at[graph.target]
        near: NDArray[np.bool_] = np.hypot(apart[:, 0], apart[:, 1]) <= self.range_m
        return near

    def next_change(self, time: float) -> float:
        return (times_over(self.every_s, time) + 1) * self.every_s


def _require_peers(trace: TraceFile, name: str, peers: int) -> None:
    values = trace.numbers(name)
    if (wrong := (values != np.floor(values)) | (values >= peers)).any():
        raise trace.error(int(wrong.argmax()), name, f"a peer's number, 0 to {peers - 1}")


LINKS: tuple[type[Links], ...] = (AllLinks, LinkTrace, Positions)


def _or_a_file(value: Any) -> Any:
    """Lets the name of a file of intervals stand for the block."""
    is_file = isinstance(value, str) and value.rpartition(".")[2] in ("csv", "parquet")
    return {"name": "trace", "path": value} if is_file else value


SomeLinks = Annotated[Links, OneOf(LINKS), BeforeValidator(_or_a_file)]
