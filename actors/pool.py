"""Pools of workers, as their users see them: workers form groups, and jobs are submitted to a group.

A factory builds each worker, set-ups then give it what it needs, and after that it carries out jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from actors.instrument import Reading
from actors.job import Content, Job, Left, Request, Result, Setup, Value
from actors.machine import Machine
from actors.process import Life


class JobFailed(Exception):
    """A job raised an exception, or its workers died again and again. traceback: the text of the worker's traceback."""

    def __init__(self, label: str, cause: str, traceback: str) -> None:
        super().__init__(label, cause, traceback)
        self.label, self.cause, self.traceback = label, cause, traceback

    def __str__(self) -> str:
        return f"{self.label}: {self.cause}"


class MissingResources(Exception):
    """There is no cluster, or it does not have the resources that a run asks for."""


class Group(NamedTuple):
    """A group of workers of one kind."""

    name: str
    factory: Callable[[], Any]  # picklable; called once in each worker
    workers: int  # how many
    cpus: float  # that each worker needs
    gpus: float  # that each worker needs


class Pool(Protocol):
    """Groups of workers, to which jobs are submitted."""

    machines: dict[str, Machine]
    """What each worker's process computes with, by the worker's name, as of its last set-up."""
    lives: list[Life]
    """The workers' processes so far, in the order in which they were ready; also those that have ended."""
    warnings: list[str]
    """What whoever watches the run should know while it goes on."""

    def start(self, group: Group) -> None:
        """Makes the group's workers."""

    def set_up(self, setups: dict[str, Setup]) -> None:
        """Does a set-up on every worker of a group, and waits until all have done it. setups: by group.

        Workers that later replace dead ones do it too, before they get jobs.
        """

    def submit(
        self, group: str, request: Request[Result, Left], *, priority: tuple[int, ...] = (), label: str = ""
    ) -> Job[Result, Left]:
        """Submits a request to a group, and returns its job. It may run once all values in the request are there.

        priority: among jobs that may run, the lowest runs first. label: what error messages call the job.
        """

    def wait(self) -> None:
        """Waits until at least one more job is done. Raises JobFailed, or KeyboardInterrupt if the run must end."""

    def put(self, content: Any) -> Value[Any]:
        """Returns a value that holds the content, without a job."""

    def get(self, value: Value[Content]) -> Content:
        """Returns the content of a value whose job is done. It must not be changed."""

    def show(self, readings: Sequence[Reading]) -> None:
        """Shows all readings of the run's program on a dashboard, if there is one. They replace the ones before."""

    def close(self) -> None:
        """Ends all workers."""


def finished(pool: Pool, job: Job[Result, Left]) -> Job[Result, Left]:
    """Waits until a job is done, and returns it. Raises JobFailed if it or another job fails."""
    while not job.done:
        pool.wait()
    return job
