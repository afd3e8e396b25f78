"""Chooses which job is given next, and to which worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.job import Job
from actors.queue import Queue
from actors.worker import Worker

DEPTH = 2  # jobs that a worker has at a time: the arguments of the next travel while the first runs


def choose(queue: Queue, group: str, workers: Sequence[Worker]) -> tuple[Job[Any, Any] | None, list[Worker]]:
    """Returns the group's next job, if it has one, and who gets it.

    That is one worker, all workers for a job of a gang, or nobody if the job must wait. workers: of the group.
    """
    if job := queue.first(group):
        if job.together and len(workers) > 1:
            return job, _gang(workers)
        return job, _least_busy(workers, job, few=queue.ready(group) < sum(worker.is_set_up for worker in workers))
    if job := queue.ahead(group):
        alone = not (job.together and len(workers) > 1)
        return job, _least_busy_ahead(workers, queue) if alone and not job.attempts else []
    return None, []


def _gang(workers: Sequence[Worker]) -> list[Worker]:
    """Returns all workers for a job of a gang, or none while any is busy: in a gang, each waits for the others."""
    return [] if any(worker.calls for worker in workers) else list(workers)


def _least_busy(workers: Sequence[Worker], job: Job[Any, Any], *, few: bool) -> list[Worker]:
    """Returns the worker that gets a ready job, in a list; an empty list if the job must wait.

    While many jobs are ready, each worker holds a next job beside the one that it runs. When fewer are ready than there
    are workers, a job waits for an idle worker, lest it queues behind another job while a worker falls idle.
    """
    worker = max((worker for worker in workers if worker.is_set_up), key=_free, default=None)
    if worker is None or _free(worker) == 0:
        return []
    return [] if worker.calls and (few or job.attempts) else [worker]


def _least_busy_ahead(workers: Sequence[Worker], queue: Queue) -> list[Worker]:
    """Returns the worker that gets a job before what the job needs is there, in a list; an empty list if none should.

    A worker has at most one such job, lest jobs queue there that others could do by then.
    """
    there = [worker for worker in workers if worker.is_set_up and not any(map(queue.waits, worker.jobs))]
    worker = max(there, key=_free, default=None)
    return [worker] if worker and _free(worker) else []


def _free(worker: Worker) -> int:
    """How many more jobs a worker can be given.

    A job whose worker died runs alone, so that another death shows whether that job is the cause.
    """
    return 0 if any(job.attempts for job in worker.jobs) else DEPTH - len(worker.jobs)
