"""Jobs that no worker has yet: some wait for what other jobs leave, the rest are handed out by priority."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from typing import Any

from actors.job import Job, values_of


class Queue:
    """Of all groups of workers. Equal priorities go by the order in which jobs became ready."""

    def __init__(self) -> None:
        self._ready: dict[str, list[tuple[tuple[int, ...], int, Job[Any]]]] = defaultdict(list)
        self._blocked: dict[Job[Any], set[Job[Any]]] = {}  # a job, and those that it waits for
        self._waiting: dict[Job[Any], list[Job[Any]]] = {}  # a job, and those that wait for it
        self._serial = itertools.count()

    def add(self, job: Job[Any]) -> None:
        """A new job, ready once the jobs are done that leave its arguments."""
        assert job.request is not None  # it is not done
        needed = {value.job for value in values_of(job.request) if value.job is not None}
        if not needed:
            self.push(job)
            return
        self._blocked[job] = needed
        for other in needed:
            self._waiting.setdefault(other, []).append(job)

    def push(self, job: Job[Any]) -> None:
        """A job that is ready."""
        heapq.heappush(self._ready[job.group], (job.priority, next(self._serial), job))

    def first(self, group: str) -> Job[Any] | None:
        """The next job of the group, which stays in the queue."""
        ready = self._ready[group]
        return ready[0][2] if ready else None

    def ready(self, group: str) -> int:
        """How many jobs of the group can be handed out."""
        return len(self._ready[group])

    def pop(self, group: str) -> None:
        """Takes that job out."""
        heapq.heappop(self._ready[group])

    def release(self, done: Job[Any]) -> None:
        """Makes ready what waited for this job only."""
        for waiting in self._waiting.pop(done, []):
            self._blocked[waiting].discard(done)
            if not self._blocked[waiting]:
                del self._blocked[waiting]
                self.push(waiting)
