"""The jobs that no worker has yet. Some can run at once; others need values that other jobs have not left yet."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from typing import Any

from actors.job import Job

_Heap = list[tuple[tuple[int, ...], int, Job[Any, Any]]]


class Queue:
    """The queue of all groups. It gives jobs by priority, and among equal ones the job that became ready first.

    A job is ready once the jobs that leave its values are done. It may be given to a worker even before, once all of
    these jobs are with workers: then it starts as soon as they are done, without waiting for this process.
    """

    def __init__(self) -> None:
        self._ready: dict[str, _Heap] = defaultdict(list)
        self._ahead: dict[str, _Heap] = defaultdict(list)  # some may be ready or given since
        self._needs: dict[Job[Any, Any], set[Job[Any, Any]]] = {}  # a job, and those for which it waits
        self._needed: dict[Job[Any, Any], list[Job[Any, Any]]] = defaultdict(list)  # a job, and those that wait for it
        self._given: dict[Job[Any, Any], int] = {}  # jobs with workers, numbered as they got them
        self._serial = itertools.count()

    def add(self, job: Job[Any, Any]) -> None:
        """Adds a new job, or one that must be done again."""
        self._given.pop(job, None)
        needs = {value.job for value in job.needs if value.job is not None}
        for other in needs - self._needs.get(job, set()):
            self._needed[other].append(job)
        if needs:
            self._needs[job] = needs
            self._offer_ahead(job)
        else:
            self._needs.pop(job, None)
            self._push(self._ready, job)

    def give(self, job: Job[Any, Any]) -> None:
        """Takes a job out of the queue, because a worker gets it."""
        self._given[job] = next(self._serial)
        for heap in (self._ready[job.group], self._ahead[job.group]):
            if heap and heap[0][2] is job:
                heapq.heappop(heap)
        for other in self._needed.get(job, ()):
            self._offer_ahead(other)

    def release(self, done: Job[Any, Any]) -> None:
        """Marks the jobs as ready that waited for this job only."""
        self._given.pop(done, None)
        for waiting in self._needed.pop(done, ()):
            self._needs[waiting].discard(done)
            if not self._needs[waiting]:
                del self._needs[waiting]
                if waiting not in self._given:
                    self._push(self._ready, waiting)

    # --- what it holds ------------------------------------------------------------------------------------------------

    def first(self, group: str) -> Job[Any, Any] | None:
        """Returns the next ready job of a group, and leaves it in the queue; None if there is none."""
        ready = self._ready[group]
        return ready[0][2] if ready else None

    def ahead(self, group: str) -> Job[Any, Any] | None:
        """Returns the next job of a group that may be given although it is not ready; None if there is none."""
        heap = self._ahead[group]
        while heap and not self._may_be_ahead(heap[0][2]):
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def ready(self, group: str) -> int:
        """Returns the number of ready jobs of a group."""
        return len(self._ready[group])

    def order(self, job: Job[Any, Any]) -> int:
        """Returns a number that is lower the earlier a worker got the job. It is -1 if the job is done."""
        return self._given.get(job, -1)

    def waits(self, job: Job[Any, Any]) -> bool:
        """Whether a job needs values that other jobs have not left yet."""
        return job in self._needs

    def given_after(self, job: Job[Any, Any]) -> list[Job[Any, Any]]:
        """Returns the jobs that workers have, and that wait for this job."""
        return [other for other in self._needed.get(job, ()) if other in self._given]

    def _may_be_ahead(self, job: Job[Any, Any]) -> bool:
        return job in self._needs and job not in self._given and self._needs[job] <= self._given.keys()

    def _offer_ahead(self, job: Job[Any, Any]) -> None:
        if self._may_be_ahead(job):
            self._push(self._ahead, job)

    def _push(self, heaps: dict[str, _Heap], job: Job[Any, Any]) -> None:
        heapq.heappush(heaps[job.group], (job.priority, next(self._serial), job))
