"""Where work runs, as its users see it: groups of workers, and jobs submitted to them.

A worker hosts what a picklable factory builds; set-ups then give it what it needs, and jobs call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from actors.job import Job, Request, Result, Setup, Value


class JobFailed(Exception):
    """A job raised an exception, or killed its worker again and again. traceback: its text, from where it ran."""

    def __init__(self, label: str, cause: str, traceback: str) -> None:
        super().__init__(label, cause, traceback)
        self.label, self.cause, self.traceback = label, cause, traceback

    def __str__(self) -> str:
        return f"{self.label}: {self.cause}"


class MissingResources(Exception):
    """The cluster has not got what a run asks for, or there is none."""


class Group(NamedTuple):
    """Workers of one kind."""

    name: str
    factory: Callable[[], Any]  # picklable; called once in each worker
    workers: int
    cpus: float  # of each
    gpus: float


class Pool(Protocol):
    """Workers in groups."""

    def start(self, group: Group) -> None:
        """Makes the group's workers."""

    def set_up(self, setups: dict[str, Setup]) -> None:
        """Does a group's set-up on every worker of it, also on those that later replace dead ones, before any job that
        is submitted after it. Waits until all have done it."""

    def submit(
        self, group: str, request: Request[Result], *, priority: tuple[int, ...] = (), label: str = ""
    ) -> Job[Result]:
        """A job for any worker of the group, once all values in its request are there."""

    def wait(self) -> None:
        """Until at least one more job is done. Raises JobFailed; KeyboardInterrupt in a run that is to end."""

    def put(self, content: Any) -> Value[Any]:
        """A value that is there at once."""

    def gauge(self, readings: dict[str, float]) -> None:
        """Shows readings on a dashboard, where there is one."""

    def close(self) -> None:
        """Ends all workers."""


def finished(pool: Pool, job: Job[Result]) -> Job[Result]:
    """The job, once it is done."""
    while not job.done:
        pool.wait()
    return job
