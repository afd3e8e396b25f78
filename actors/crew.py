"""The workers on Ray, group by group. The dead are replaced."""

from collections.abc import Callable, Iterator
from typing import Any

import ray

from actors.actors import Actors
from actors.job import Job, Seat, Setup, values_of
from actors.pool import ATTEMPTS, Group, JobFailed
from actors.worker import Worker

LATE_S = 30.0  # seconds after which a worker that Ray has not started counts as waiting for a node


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
