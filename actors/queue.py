"""Jobs that no worker has yet. Some wait for values that other jobs will leave; the others are ready."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from typing import Any

from actors.job import Job, values_of


class Queue:
    """The queue of all groups. Ready jobs come by priority; among equal ones, that which became ready first."""

    def __init__(self) -> None:
        self._ready: dict[str, list[tuple[tuple[int, ...], int, Job[Any, Any]]]] = defaultdict(list)
        self._blocked: dict[Job[Any, Any], set[Job[Any, Any]]] = {}  # a job, and the jobs that it waits for
        self._waiting: dict[Job[Any, Any], list[Job[Any, Any]]] = {}  # a job, and the jobs that wait for it
        self._serial = itertools.count()

    def add(self, job: Job[Any, Any]) -> None:
        """Adds a new job. It becomes ready once the jobs that leave its values are done."""
        assert job.request is not None  # it is not done
        needed = {value.job for value in values_of(job.request) if value.job is not None}
        if not needed:
            self.push(job)
            return
        self._blocked[job] = needed
        for other in needed:
            self._waiting.setdefault(other, []).append(job)

    def push(self, job: Job[Any, Any]) -> None:
        """Adds a job that is ready."""
        heapq.heappush(self._ready[job.group], (job.priority, next(self._serial), job))

    def first(self, group: str) -> Job[Any, Any] | None:
        """Returns the next ready job of a group, and leaves it in the queue; None if there is none."""
        ready = self._ready[group]
        return ready[0][2] if ready else None

    def ready(self, group: str) -> int:
        """Returns the number of ready jobs of a group."""
        return len(self._ready[group])

    def pop(self, group: str) -> None:
        """Removes the next ready job of a group."""
        heapq.heappop(self._ready[group])

    def release(self, done: Job[Any, Any]) -> None:
        """Makes the jobs ready that waited for nothing but this job."""
        for waiting in self._waiting.pop(done, []):
            self._blocked[waiting].discard(done)
            if not self._blocked[waiting]:
                del self._blocked[waiting]
                self.push(waiting)
