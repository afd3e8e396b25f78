"""Repeats work for a pool on Ray: the jobs of workers that died, and jobs whose values were lost with a node."""

from collections.abc import Callable
from typing import Any

from ray.exceptions import ObjectLostError, OutOfMemoryError

from actors.crew import Crews
from actors.job import Job, Value
from actors.pool import ATTEMPTS, JobFailed, ValuesLost
from actors.queue import Queue
from actors.worker import Worker


class Recovery:
    """Replaces workers, and puts jobs back into the queue. It hands out none."""

    def __init__(self, crews: Crews, queue: Queue, warn: Callable[[str], None]) -> None:
        """warn: called with a text for each thing that a user who watches the run should know."""
        self._crews, self._queue, self._warn = crews, queue, warn

    # --- workers ------------------------------------------------------------------------------------------------------

    def replace(self, dead: Worker, cause: str, *, blame: bool = True) -> None:
        """Replaces a dead worker, and puts its jobs back into the queue. blame: whether its job may be the cause.

        Raises JobFailed if its job or its set-up has ended too many workers.
        """
        crew = self._crews.of(dead)
        for job in crew.replace(dead, cause, blame=blame):
            self.do_again(job)

    def low_on_memory(self, worker: Worker, error: OutOfMemoryError) -> None:
        """Replaces a worker that Ray has ended because its node ran low on memory. Another may find more."""
        cause = "its node ran low on memory, and Ray ended it"
        self._warn(f"{worker.name}: {cause}")
        try:
            self.replace(worker, cause)
        except JobFailed as failed:
            raise JobFailed(failed.label, failed.cause, failed.traceback, "node") from error

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def do_again(self, job: Job[Any, Any]) -> None:
        """Puts a job back into the queue, and also the jobs that workers have and that need its values, which will
        not come."""
        for other in self._queue.given_after(job):
            for worker in self._crews.workers:
                worker.calls = {reference: held for reference, held in worker.calls.items() if held is not other}
            self.do_again(other)
        self._queue.add(job)

    def lost(self, worker: Worker, reference: Any, error: ObjectLostError) -> None:
        """Repeats a job whose argument or answer was lost with a node, after the values that it needs were made again.

        reference: to the answer of the worker. Raises ValuesLost if what the job needs cannot be made again.
        """
        job = worker.calls[reference]
        if job is None or job.request is None:
            label = job.label if job else f"{worker.name}: set-up"
            raise ValuesLost(label, "the data were lost with a node", "")
        lost = getattr(error, "cause", error).object_ref_hex
        found = [value for value in job.needs if value.content.hex() == lost]
        for value in found:
            if value.again is None:
                raise ValuesLost(job.label, "a model or state that it needs was lost with a node", "")
            if value.job is None:  # else another job has found the loss before
                self._make_again(value)
        job.attempts += not found  # the answer was lost, or a value that was made again meanwhile
        if job.attempts == ATTEMPTS:
            raise ValuesLost(job.label, f"it was lost with a node {ATTEMPTS} times", "")
        if job.together and len(self._crews.of(worker).workers) > 1:
            self.replace(worker, str(error), blame=False)  # others of its gang may wait for it
            return
        del worker.calls[reference]
        self.do_again(job)

    def _make_again(self, value: Value[Any]) -> None:
        """Submits the job that left a value once more."""
        recipe = value.again
        assert recipe is not None
        job = Job.of(recipe.group, recipe.request, recipe.priority, recipe.label)
        job.values[recipe.place] = value
        value.job = job
        self._queue.add(job)
