"""How far a run is, for those who watch it."""

from __future__ import annotations

import time
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a run is."""

    round: int  # rounds that are over
    rounds: int  # of the whole run, if it does not end early
    virtual_time: float
    steps: int
    in_flight: int
    used: int  # updates
    seconds: float  # since the first job was handed out
    evaluated: int | None  # rounds that were over when the model was last evaluated
    metrics: dict[str, float]  # of the global model, or of peers, then


class Mark(NamedTuple):
    """A point of the timeline at which a run can be looked at: the end of a round."""

    round: int  # rounds that are over
    virtual_time: float
    in_flight: int
    metrics: dict[str, float] | None  # None: nothing was evaluated there


class Stopwatch(NamedTuple):
    """When a run began to hand out jobs."""

    began: float  # seconds since the epoch
    counted: float  # seconds of a counter that never goes back

    @classmethod
    def start(cls) -> Stopwatch:
        return cls(time.time(), time.perf_counter())

    @property
    def seconds(self) -> float:
        """Wall seconds since then."""
        return time.perf_counter() - self.counted
