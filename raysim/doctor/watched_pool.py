"""A pool that ends a measurement after some seconds."""

import time
from typing import Any

from actors import Job, Pool, Request

OF_CLIENTS = ("train", "mix")  # names of the jobs in which a client, or a peer, trains


class Enough(Exception):
    """Clients have trained for long enough."""


class WatchedPool:
    """A pool that remembers its jobs, and raises Enough once clients have trained for so many seconds."""

    def __init__(self, pool: Pool, seconds: float) -> None:
        self._pool, self._seconds = pool, seconds
        self.jobs: list[Job[Any, Any]] = []
        self.began = 0.0  # when the first client could train, by time.perf_counter; 0 before that

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def submit(self, group: str, request: Request[Any, Any], **options: Any) -> Job[Any, Any]:
        self._check()
        if request.name in OF_CLIENTS and not self.began:
            self.began = time.perf_counter()
        self.jobs.append(self._pool.submit(group, request, **options))
        return self.jobs[-1]

    def wait(self) -> None:
        self._check()
        self._pool.wait()

    def _check(self) -> None:
        """Raises Enough if the time is over, and a client has trained."""
        over = self.began and time.perf_counter() - self.began >= self._seconds
        if over and any(job.done for job in self.jobs if job.name in OF_CLIENTS):
            raise Enough
