"""Where work runs, as its users see it: groups of workers, jobs given to them, values that jobs leave.

A worker hosts what a picklable factory builds. A job calls one of its methods, which returns a tuple: first a small
result, which comes back, then values, which stay where they are and can be arguments of later jobs. A value that is one
of the job's arguments, the very object, is not stored again. A job is retried if its worker dies, so it must give the
same answer every time and change nothing that it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


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


class Took(NamedTuple):
    """When a job ran, by the clock of its worker's machine."""

    started: float  # seconds since the epoch
    seconds: float


@dataclass(eq=False)
class Value:
    """Something that a job leaves, there once the job is done. It is freed when nobody holds it any more."""

    job: Job | None = None
    content: Any = None  # the pool's business


@dataclass(eq=False)
class Job:
    """A call that was submitted. What follows `done` is set once it is."""

    group: str
    method: str
    args: tuple[Any, ...]
    priority: tuple[int, ...]  # low first, among jobs that can run
    label: str  # for messages about it
    values: list[Value] = field(default_factory=list)
    together: bool = False  # done by all workers of the group, as a gang
    attempts: int = 0  # that ended with the death of the worker
    done: bool = False
    result: Any = None
    worker: str = ""
    took: Took = field(default_factory=lambda: Took(0.0, 0.0))


class Pool(Protocol):
    """Workers in groups."""

    def start(self, group: Group) -> None:
        """Makes the group's workers."""

    def broadcast(self, group: str, method: str, *args: Any) -> None:
        """Calls the method on every worker of the group, also on those that replace dead ones, before any later job.
        Waits until all have done it."""

    def submit(
        self,
        group: str,
        method: str,
        *args: Any,
        values: int = 0,
        priority: tuple[int, ...] = (),
        label: str = "",
        together: bool = False,
    ) -> Job:
        """A job for any worker of the group, once all Values among its arguments are there. values: that it leaves.

        together: for all workers of the group at once. The method gets a `Gang` before its other arguments, and must
        answer the same in all of them; what the first one answers is kept.
        """

    def wait(self) -> None:
        """Until at least one more job is done. Raises JobFailed; KeyboardInterrupt in a run that is to end."""

    def put(self, content: Any) -> Value:
        """A value that is there at once."""

    def gauge(self, readings: dict[str, float]) -> None:
        """Shows readings on a dashboard, where there is one."""

    def close(self) -> None:
        """Ends all workers."""


def finished(pool: Pool, job: Job) -> Job:
    """The job, once it is done."""
    while not job.done:
        pool.wait()
    return job
