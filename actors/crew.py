"""The workers on Ray, group by group. The dead are replaced, and further ones join where the cluster has room."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import ray

from actors.actors import Actors
from actors.job import Job, Seat, Setup, values_of
from actors.nodes import room
from actors.pool import ATTEMPTS, Group, JobFailed
from actors.worker import Pulse, Worker

LATE_S = 30.0  # seconds after which a worker that Ray has not started counts as waiting for a node


class Crew:
    """The workers of one group. The first `group.workers` of them have their own places in the placement group."""

    def __init__(self, group: Group, actors: Actors, warn: Callable[[str], None]) -> None:
        """actors: makes the workers. warn: called with a text for each thing that a user who watches the run should
        know."""
        self.group = group
        self._actors, self._warn = actors, warn
        self._setups: list[Setup] = []
        self._met = False  # whether its workers have done a job as a gang
        numbers = dict.fromkeys([*range(group.workers), *actors.resting(group.name)])
        self.workers = [self._make(number) for number in numbers]

    # --- who is there -------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether work can begin: at least one worker is set up, and so are all regular ones that have a node."""
        due = [worker for worker in self.workers if self._is_regular(worker) and not self._lacks_node(worker)]
        return all(worker.is_set_up for worker in due) and any(worker.is_set_up for worker in self.workers)

    def _lacks_node(self, worker: Worker) -> bool:
        """Whether a worker waits for a node, which may take long."""
        return worker.node_id is None and (worker.waits_s >= LATE_S or self._actors.placement.is_lost(worker.name))

    def _is_regular(self, worker: Worker) -> bool:
        return worker.number < self.group.workers

    # --- workers come -------------------------------------------------------------------------------------------------

    def _make(self, number: int, failures: int = 0) -> Worker:
        name = f"{self.group.name}-{number}"
        actor = self._actors.take(name, self.group)
        worker = Worker(name, number, actor, Pulse(name, actor.answer.remote, is_there), failures)
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

    def grow(self) -> None:
        """Asks for further workers: for all that the group may have, or as many as there is room for now."""
        most = self.group.workers + self.group.further
        missing = most - len(self.workers)
        if missing <= 0:
            return
        if not self.group.eager:
            waits = any(worker.node_id is None for worker in self.workers)
            missing = 0 if waits else room(self.group.needs, missing)
        taken = {worker.number for worker in self.workers}
        free = (number for number in range(most) if number not in taken)
        self.workers += [self._make(number) for number, _ in zip(free, range(missing), strict=False)]

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
        if worker.life:
            worker.life.until = time.time()
        if not self._is_regular(worker):
            del self.workers[place]  # `grow` asks for another when there is room
            return
        failures = 0 if worker.is_set_up else worker.failures + blame
        if failures == ATTEMPTS:
            raise JobFailed(f"{worker.name}: set-up", f"it died {ATTEMPTS} times; the last time: {cause}", "")
        self.workers[place] = self._make(worker.number, failures)

    def silent(self, passed_s: float, patience_s: float) -> list[Worker]:
        """Pings the workers that run. Returns those that have not answered for too long.

        passed_s: seconds since the last call.
        """
        running = [worker for worker in self.workers if worker.node_id]
        for worker in running:
            if warning := worker.pulse.beat(passed_s, patience_s):
                self._warn(warning)
        return [worker for worker in running if worker.pulse.silent_s >= patience_s]

    def late(self) -> list[Worker]:
        """Returns the workers that wait for a node although they have their own places. Warns once about each."""
        late = [worker for worker in self.workers if self._is_regular(worker) and worker.waits_s >= LATE_S]
        for worker in late:
            if not worker.told:
                self._warn(f"{worker.name} waits for a node, {worker.waits_s:.0f} s")
                worker.told = True
        return late

    def further(self) -> list[Worker]:
        """Returns the workers that run without their own places. They must make room for those that have some."""
        return [worker for worker in self.workers if worker.node_id and not self._is_regular(worker)]


class Crews(dict[str, Crew]):
    """The crews of a pool, by group."""

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


def _set_up(worker: Worker, setup: Setup) -> None:
    contents = [value.content for value in values_of(setup)]
    worker.calls[worker.actor.set_up.remote(setup, *contents)] = None


def is_there(reference: object) -> bool:
    """Whether an answer has come, or never will because the actor has died."""
    return bool(ray.wait([reference], num_returns=1, timeout=0, fetch_local=False)[0])
