"""Looks after the workers of a pool on Ray: who waits for a node, and whose work must be done again, because its worker
died or its values were lost with a node."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from ray.exceptions import ObjectLostError, OutOfMemoryError

from actors.crew import Crew, Crews
from actors.job import Job
from actors.pool import ATTEMPTS, JobFailed, ValuesLost
from actors.queue import Queue
from actors.worker import Worker

LOOK_S = 2.0  # seconds between looks for workers that wait for a node
LEAST_WAIT_S = 120.0  # seconds that a run always waits for a node, because Ray takes a while to see that one is lost


class Watch:
    """Looks after workers that wait for a node, whenever it is asked, though not too often."""

    def __init__(self, crews: Mapping[str, Crew], wait_s: float) -> None:
        """crews: those of all groups; they may change. wait_s: how long workers may wait for a node while nothing else
        runs, if that is more than LEAST_WAIT_S."""
        self._crews, self._wait_s = crews, max(wait_s, LEAST_WAIT_S)
        self._looked = time.monotonic()
        self.moved = time.monotonic()  # when a worker was last seen to do anything

    def look(self) -> None:
        """Raises JobFailed if workers have waited for a node for too long, and nothing else runs."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        late = [worker for crew in self._crews.values() for worker in crew.late()]
        if not late:
            return
        stands_s = min(now - self.moved, max(worker.waits_s for worker in late))
        working = any(worker.jobs for crew in self._crews.values() for worker in crew.workers if worker.node_id)
        if stands_s >= self._wait_s and not working:
            cause = f"no node has had room for it for {stands_s:.0f} s, and no other job can run; resume the run when"
            raise JobFailed(late[0].name, f"{cause} there is one, or let it wait longer with resources.wait_s", "")


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
        """Repeats a job whose answer was lost with a node. reference: to the answer of the worker.

        Raises ValuesLost if it is a value that the job needs.
        """
        job = worker.calls[reference]
        if job is None or job.request is None:
            label = job.label if job else f"{worker.name}: set-up"
            raise ValuesLost(label, "the data were lost with a node", "")
        lost = getattr(error, "cause", error).object_ref_hex
        if any(value.content.hex() == lost for value in job.needs):
            raise ValuesLost(job.label, "a model, a state or an update that it needs was lost with a node", "")
        job.attempts += 1
        if job.attempts == ATTEMPTS:
            raise ValuesLost(job.label, f"it was lost with a node {ATTEMPTS} times", "")
        if job.together and len(self._crews.of(worker).workers) > 1:
            self.replace(worker, str(error), blame=False)  # others of its gang may wait for it
            return
        del worker.calls[reference]
        self.do_again(job)
