"""The virtual clock, a heap of `(time, priority, serial)` and nothing else (after SimPy's environment), and its end."""

import heapq
import itertools
import math
from typing import Generic, NamedTuple, TypeVar

Event = TypeVar("Event")


class Clock(Generic[Event]):
    """A queue of events in order of time, then of priority (low first), then of when they were scheduled."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, int, Event]] = []
        self._serial = itertools.count()

    def schedule(self, time: float, priority: int, event: Event) -> None:
        """Schedules an event. Raises ValueError if the time is in the past, infinite or NaN."""
        if not self.now <= time < math.inf:
            raise ValueError(f"an event must be scheduled at a finite time from {self.now} on, got {time!r}")
        heapq.heappush(self._heap, (time, priority, next(self._serial), event))

    def pop(self) -> Event:
        """Returns the next event; `now` becomes its time. Raises IndexError if none is left."""
        self.now, _, _, event = heapq.heappop(self._heap)
        return event

    @property
    def next_time(self) -> float:
        """The time of the next event. Raises IndexError if none is left."""
        return self._heap[0][0]

    def pass_to(self, time: float) -> None:
        """Moves `now` on to a time before the next event."""
        self.now = time

    def __len__(self) -> int:
        return len(self._heap)


class Horizon(NamedTuple):
    """How far a timeline goes: until whichever comes first. What is infinite ends nothing."""

    rounds: float = math.inf  # rounds or, where the world has none, server steps
    time: float = math.inf  # virtual time, after which nothing happens
    updates: float = math.inf  # that server steps use, or mixes of peers; the round with so many is the last one
    every_rounds: int | None = None  # rounds from one evaluation to the next; None: not by rounds
    every_time: float | None = None  # virtual time from one evaluation to the next; None: not by time
    versions: float = math.inf  # server steps, after the last of which nothing happens

    def ends(self, over: int, time: float, updates: int, versions: int = 0) -> str | None:
        """Returns what ends the timeline when so many rounds are over; None if it continues. time: the virtual time
        then. updates, versions: how many there were."""
        if versions >= self.versions:
            return "epsilon"
        if time >= self.time:
            return "virtual_time"
        if updates >= self.updates:
            return "updates"
        return "rounds" if over >= self.rounds else None

    def is_evaluated(self, over: int) -> bool:
        """Whether models are evaluated when so many rounds are over, because of their number."""
        return self.every_rounds is not None and over % self.every_rounds == 0

    def due(self, number: int) -> float:
        """Returns the virtual time of an evaluation by time, which count from 1; infinite if there are none."""
        return math.inf if self.every_time is None else number * self.every_time

    def next_due(self, time: float) -> float:
        """Returns the first virtual time of an evaluation from a time on; infinite if there are none."""
        if self.every_time is None:
            return math.inf
        number = max(int(time // self.every_time), 1)  # rounding may make it one too low
        return next(due for due in (self.due(number), self.due(number + 1), self.due(number + 2)) if due >= time)
