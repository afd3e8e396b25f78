"""Chooses which job is given next, and to which worker."""

from collections.abc import Sequence
from typing import Any

from actors.job import Job
from actors.queue import Queue
from actors.worker import Worker

DEPTH = 2  # jobs that a worker has at a time: the arguments of the next travel while the first runs


def choose(queue: Queue, group: str, workers: Sequence[Worker]) -> tuple[Job[Any, Any] | None, list[Worker]]:
    """Returns the group's next job, if it has one, and the workers that get it: one, all of them for a job of a gang,
    or none if the job must wait.

    workers: those of the group.
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
    """Returns all workers for a job of a gang, or none while one of them is busy, because members of a gang wait for
    each other."""
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
    """Returns the worker, in a list, that gets a job whose values are not there yet; an empty list if none should get
    it.

    A worker has at most one such job, so that jobs do not queue there while other workers are idle.
    """
    there = [worker for worker in workers if worker.is_set_up and not any(map(queue.waits, worker.jobs))]
    worker = max(there, key=_free, default=None)
    return [worker] if worker and _free(worker) else []


def _free(worker: Worker) -> int:
    """Returns how many more jobs a worker can be given.

    A job whose worker died is done without others beside it, so that a second death shows that this job is the cause.
    """
    return 0 if any(job.attempts for job in worker.jobs) else DEPTH - len(worker.jobs)
