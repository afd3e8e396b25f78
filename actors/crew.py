"""The workers on Ray, group by group. The dead are replaced, and what was lost with them is done again."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.exceptions import ObjectLostError, OutOfMemoryError

from actors.actors import Actors
from actors.job import Job, Seat, Setup, values_of
from actors.pool import ATTEMPTS, Group, JobFailed, ValuesLost
from actors.queue import Queue, Worker

LATE_S = 30.0  # seconds after which a worker that Ray has not started counts as waiting for a node
LOOK_S = 2.0  # seconds between looks for workers that wait for a node
LEAST_WAIT_S = 120.0  # seconds that a run always waits for a node, because Ray takes a while to see that one is lost


class Crew:
    """The workers of one group."""

    def __init__(self, group: Group, actors: Actors, warn: Callable[[str], None]) -> None:
        """actors: makes the workers. warn: called with a text for each thing that a user who watches the run should
        know."""
        self.group = group
        self._actors, self._warn = actors, warn
        self._setups: list[Setup] = []
        self._met = False  # whether its workers have done a job as a gang
        self.workers = [self._make(number) for number in range(group.workers)]

    # --- who is there -------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether work can begin: at least one worker is set up, and so are all that have a node."""
        due = [worker for worker in self.workers if not self._lacks_node(worker)]
        return all(worker.is_set_up for worker in due) and any(worker.is_set_up for worker in self.workers)

    def _lacks_node(self, worker: Worker) -> bool:
        """Whether a worker waits for a node, which may take long."""
        return worker.node_id is None and (worker.waits_s >= LATE_S or self._actors.placement.is_lost(worker.name))

    # --- workers come -------------------------------------------------------------------------------------------------

    def _make(self, number: int, failures: int = 0) -> Worker:
        name = f"{self.group.name}-{number}"
        actor = self._actors.take(name, self.group.needs)
        worker = Worker(name, number, actor, failures)
        worker.calls[actor.node.remote()] = None
        worker.calls[actor.open.remote(self.group.factory)] = None
        for setup in self._setups:
            _set_up(worker, setup)
        return worker

    def set_up(self, setup: Setup) -> None:
        """Begins a set-up on all workers. Those that come later do it, too."""
        self._setups.append(setup)
        for worker in self.workers:
            _set_up(worker, setup)

    def seats(self) -> list[Seat]:
        """Returns the workers' seats in a gang."""
        self._met = True
        members = tuple(worker.actor for worker in self.workers)
        return [Seat(rank, members) for rank in range(len(members))]

    # --- workers go ---------------------------------------------------------------------------------------------------

    def replace(self, dead: Worker, cause: str, *, blame: bool) -> list[Job[Any, Any]]:
        """Replaces a dead worker, and returns the jobs that it had.

        If it has worked in a gang, all members are replaced, because others may wait for it. blame: whether its job or
        set-up may be the cause. Raises JobFailed if it was one of several that died so.
        """
        gone = list(self.workers) if self._met else [dead]
        self._met = False
        suspects = dead.jobs if blame and dead.is_set_up else []  # it died in its set-up, before any of its jobs
        for worker in gone:
            ray.kill(worker.actor)  # it may be alive but out of reach, and would keep its resources
            self._make_again(worker, cause, blame=blame)
        jobs = [job for job in dict.fromkeys(job for worker in gone for job in worker.jobs) if not job.done]
        for job in jobs:
            job.attempts += job in suspects
            if job.attempts == ATTEMPTS:
                raise JobFailed(job.label, f"its worker died {ATTEMPTS} times; the last time: {cause}", "")
        return jobs

    def _make_again(self, worker: Worker, cause: str, *, blame: bool) -> None:
        place = self.workers.index(worker)
        failures = 0 if worker.is_set_up else worker.failures + blame
        if failures == ATTEMPTS:
            raise JobFailed(f"{worker.name}: set-up", f"it died {ATTEMPTS} times; the last time: {cause}", "")
        self.workers[place] = self._make(worker.number, failures)

    def late(self) -> list[Worker]:
        """Returns the workers that wait for a node. Warns once about each."""
        late = [worker for worker in self.workers if worker.waits_s >= LATE_S]
        for worker in late:
            if not worker.told:
                self._warn(f"{worker.name} waits for a node, {worker.waits_s:.0f} s")
                worker.told = True
        return late


class Crews(dict[str, Crew]):
    """The crews of a pool, by group. Jobs of workers that are replaced go back into its queue."""

    def __init__(self, queue: Queue, warn: Callable[[str], None], wait_s: float) -> None:
        """warn: called with a text for each thing that a user who watches the run should know. wait_s: how long workers
        may wait for a node while nothing else runs, if that is more than LEAST_WAIT_S."""
        super().__init__()
        self._queue, self._warn, self._wait_s = queue, warn, max(wait_s, LEAST_WAIT_S)
        self._looked = self.moved = time.monotonic()  # moved: when a worker was last seen to do anything

    @property
    def workers(self) -> Iterator[Worker]:
        """All workers, group after group."""
        for crew in self.values():
            yield from crew.workers

    def of(self, worker: Worker) -> Crew:
        """Returns the crew of a worker, even if the worker has been replaced."""
        return self[worker.name.rpartition("-")[0]]

    def has(self, worker: Worker) -> bool:
        """Whether a worker is still in its crew: it has not been replaced."""
        return worker in self.of(worker).workers

    def look(self) -> None:
        """Raises JobFailed if workers have waited for a node for too long, and nothing else runs. It does not look
        each time that it is called."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        late = [worker for crew in self.values() for worker in crew.late()]
        if not late:
            return
        stands_s = min(now - self.moved, max(worker.waits_s for worker in late))
        if stands_s >= self._wait_s and not any(worker.jobs for worker in self.workers if worker.node_id):
            cause = f"no node has had room for it for {stands_s:.0f} s, and no other job can run; resume the run when"
            raise JobFailed(late[0].name, f"{cause} there is one, or let it wait longer with resources.wait_s", "")

    # --- what is done again -------------------------------------------------------------------------------------------

    def replace(self, dead: Worker, cause: str, *, blame: bool = True) -> None:
        """Replaces a dead worker, and puts its jobs back into the queue. blame: whether its job may be the cause.

        Raises JobFailed if its job or its set-up has ended too many workers.
        """
        for job in self.of(dead).replace(dead, cause, blame=blame):
            self._do_again(job)

    def low_on_memory(self, worker: Worker, error: OutOfMemoryError) -> None:
        """Replaces a worker that Ray has ended because its node ran low on memory. Another may find more."""
        cause = "its node ran low on memory, and Ray ended it"
        self._warn(f"{worker.name}: {cause}")
        try:
            self.replace(worker, cause)
        except JobFailed as failed:
            raise JobFailed(failed.label, failed.cause, failed.traceback, "node") from error

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
        if job.together and len(self.of(worker).workers) > 1:
            self.replace(worker, str(error), blame=False)  # others of its gang may wait for it
            return
        del worker.calls[reference]
        self._do_again(job)

    def _do_again(self, job: Job[Any, Any]) -> None:
        """Puts a job back into the queue, and also the jobs that workers have and that need its values, which will not
        come."""
        for other in self._queue.given_after(job):
            for worker in self.workers:
                worker.calls = {reference: held for reference, held in worker.calls.items() if held is not other}
            self._do_again(other)
        self._queue.add(job)


def _set_up(worker: Worker, setup: Setup) -> None:
    contents = [value.content for value in values_of(setup)]
    worker.calls[worker.actor.set_up.remote(setup, *contents)] = None
