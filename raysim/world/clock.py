"""The virtual clock: a heap of `(time, priority, serial)` and nothing else (after SimPy's environment)."""

import heapq
import itertools
import math
from typing import Generic, TypeVar

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
