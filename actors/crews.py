"""The workers of all groups of a pool on Ray."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from actors.crew import Crew
from actors.instrument import JOBS, WORKERS, Reading
from actors.queue import Queue
from actors.worker import Worker


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

    def readings(self, queue: Queue) -> Iterator[Reading]:
        """Yields readings of how many jobs are ready and running, and how many workers are in which state. queue:
        the pool's."""
        doing: Counter[tuple[str, ...]] = Counter()
        for group, crew in self.items():
            doing.update((group, worker.node, worker.state) for worker in crew.workers)
            yield Reading(JOBS, queue.ready(group), (group, "ready"))
            yield Reading(JOBS, sum(len(worker.jobs) for worker in crew.workers), (group, "running"))
        yield from (Reading(WORKERS, number, tags) for tags, number in doing.items())
