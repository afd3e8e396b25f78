"""Progress of a run: what has happened on its timeline, and what observers see of it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Protocol


class Happened(Protocol):
    """What rows need to know of a happening on a timeline: its version, round and virtual time."""

    @property
    def version(self) -> int:
        """Server steps done by then; with peers, rounds."""

    @property
    def round(self) -> int: ...

    @property
    def time(self) -> float: ...


def when(happened: Happened) -> dict[str, Any]:
    """Returns the columns that say when it happened."""
    return {"step": happened.version, "round": happened.round, "virtual_time": happened.time}


class Progress(NamedTuple):
    """How far a run is, as observers see it."""

    round: int  # rounds that are over
    rounds: int | None  # rounds of the whole run, if it does not end early; None if only `run.until` ends it
    virtual_time: float
    steps: int  # server steps so far; with peers, rounds
    in_flight: int  # clients in flight
    used: int  # updates used so far
    seconds: float  # wall seconds since the timeline began
    evaluated: int | None  # rounds that were over at the last evaluation: `round`, if this is one
    metrics: dict[str, float]  # means over clients or peers whose own models it evaluated, else of the global model
    totals: dict[str, int]  # counts so far, as run.json has them: dispatched, used, discarded and others
    traffic: dict[str, int]  # bytes of simulated messages since the run began or continued, up and down
    staleness: float | None  # mean over the updates of the last server step; None if it used none


class Mark(NamedTuple):
    """The end of a round, at which progress may be reported."""

    round: int  # rounds that are over
    virtual_time: float
    in_flight: int  # clients in flight
    metrics: dict[str, float] | None  # None: nothing was evaluated at this mark
    ends: bool = False  # whether the timeline ends with it


class Stopwatch(NamedTuple):
    """Measures the wall time since a run began its timeline."""

    began: float  # seconds since the epoch
    counted: float  # the same moment on a clock that never goes back, in seconds

    @classmethod
    def start(cls, already: float = 0.0) -> Stopwatch:
        """Starts it. already: seconds that it shows at once, which a run took before it was interrupted."""
        return cls(time.time() - already, time.perf_counter() - already)

    @property
    def seconds(self) -> float:
        """Wall seconds since the start."""
        return time.perf_counter() - self.counted
