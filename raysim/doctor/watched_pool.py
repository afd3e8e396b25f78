"""A pool that ends a measurement after some seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from actors import Group, Job, Pool, Reading, Request, Setup, Value
from actors.job import Content, Left, Result

OF_CLIENTS = ("train", "mix")  # names of the jobs in which a client, or a peer, trains


class Enough(Exception):
    """Clients have trained for long enough."""


class WatchedPool:
    """A pool that remembers its jobs, and raises Enough once clients have trained for so many seconds."""

    def __init__(self, pool: Pool, seconds: float) -> None:
        self._pool, self._seconds = pool, seconds
        self.machines, self.lives, self.warnings = pool.machines, pool.lives, pool.warnings
        self.jobs: list[Job[Any, Any]] = []
        self.began = 0.0  # when the first client could train, by time.perf_counter; 0 before that

    def submit(
        self, group: str, request: Request[Result, Left], *, priority: tuple[int, ...] = (), label: str = ""
    ) -> Job[Result, Left]:
        self._check()
        if request.name in OF_CLIENTS and not self.began:
            self.began = time.perf_counter()
        job = self._pool.submit(group, request, priority=priority, label=label)
        self.jobs.append(job)
        return job

    def wait(self) -> None:
        self._check()
        self._pool.wait()

    def _check(self) -> None:
        """Raises Enough if the time is over, and a client has trained."""
        over = self.began and time.perf_counter() - self.began >= self._seconds
        if over and any(job.done for job in self.jobs if job.name in OF_CLIENTS):
            raise Enough

    # --- the rest is as in any pool -----------------------------------------------------------------------------------

    def start(self, group: Group) -> None:
        self._pool.start(group)

    def set_up(self, setups: dict[str, Setup]) -> None:
        self._pool.set_up(setups)

    def size(self, group: str) -> int:
        return self._pool.size(group)

    def put(self, content: Any) -> Value[Any]:
        return self._pool.put(content)

    def get(self, value: Value[Content]) -> Content:
        return self._pool.get(value)

    def show(self, readings: Sequence[Reading]) -> None:
        self._pool.show(readings)

    def close(self) -> None:
        self._pool.close()
