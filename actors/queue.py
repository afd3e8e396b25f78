"""The jobs that no worker has yet, what a pool knows of a worker, and which worker gets the next job."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from actors.job import Job
from actors.process import Process

DEPTH = 2  # jobs that a worker has at a time: the arguments of the next travel while the first runs

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


@dataclass(eq=False)
class Worker:
    """A worker. It exists from the moment that it is asked for, even while Ray has no room for its actor."""

    name: str
    number: int  # its number among the workers of its group
    actor: Any  # Ray's handle of the actor
    failures: int = 0  # how many of the latest predecessors died in their set-up
    asked: float = field(default_factory=time.monotonic)  # when it was asked for
    node_id: str | None = None  # None until it runs
    process: Process | None = None  # None until its first set-up is done
    told: bool = False  # whether users have been warned that it waits for a node
    calls: dict[Any, Job[Any, Any] | None] = field(default_factory=dict)  # by answer; None: a set-up

    @property
    def jobs(self) -> list[Job[Any, Any]]:
        """The jobs that it was given and has not done."""
        return [job for job in self.calls.values() if job]

    @property
    def is_set_up(self) -> bool:
        """Whether it can be given jobs."""
        return None not in self.calls.values()

    @property
    def waits_s(self) -> float:
        """For how many seconds it has waited for room on a node; 0 once it runs."""
        return 0.0 if self.node_id else time.monotonic() - self.asked

    @property
    def node(self) -> str:
        """The address of its node; empty until it is known."""
        return self.process.node if self.process else ""


class Taker(Protocol):
    """A worker of any pool, to which jobs are given."""

    @property
    def is_set_up(self) -> bool: ...
    @property
    def jobs(self) -> Sequence[Job[Any, Any]]: ...


TakerT = TypeVar("TakerT", bound=Taker)


def choose(queue: Queue, group: str, workers: Sequence[TakerT]) -> tuple[Job[Any, Any] | None, list[TakerT]]:
    """Returns the group's next job, if one can be given, and the workers that get it: one, or all for a job of a gang.

    While many jobs are ready, each worker holds a next job beside the one that it runs. When fewer are ready than there
    are workers, a job waits for an idle worker, lest it queues behind another job while a worker falls idle. workers:
    those of the group.
    """
    there = [worker for worker in workers if worker.is_set_up]
    if job := queue.first(group):
        if job.together and len(workers) > 1:  # members of a gang wait for each other
            free = len(there) == len(workers) and not any(worker.jobs for worker in there)
            return job, there if free else []
        return job, least_busy(there, idle=bool(job.attempts) or queue.ready(group) < len(there))
    job = queue.ahead(group)
    if job is None or job.attempts or (job.together and len(workers) > 1):
        return None, []
    # A worker has one job at most whose values are not there yet, lest jobs queue there while others are idle.
    return job, least_busy([worker for worker in there if not any(map(queue.waits, worker.jobs))])


def least_busy(workers: Sequence[TakerT], *, idle: bool = False) -> list[TakerT]:
    """Returns the worker that gets a job, in a list; an empty list if the job must wait. idle: for one without jobs."""
    worker = max(workers, key=_free, default=None)
    return [] if worker is None or not _free(worker) or (idle and worker.jobs) else [worker]


def _free(worker: Taker) -> int:
    """Returns how many more jobs a worker can be given.

    A job whose worker died is done without others beside it, so that a second death shows that this job is the cause.
    """
    return 0 if any(job.attempts for job in worker.jobs) else DEPTH - len(worker.jobs)
