"""What a pool knows of a worker, and which worker gets the next job."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from actors.job import Job
from actors.process import Process
from actors.queue import Queue

DEPTH = 2  # jobs that a worker has at a time: the arguments of the next travel while the first runs


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
