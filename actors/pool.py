"""Pools of workers, as their users see them: workers form groups, and jobs are submitted to a group.

A factory builds each worker, set-ups then give it what it needs, and after that it carries out jobs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from actors.fault import Frame, Memory
from actors.host import Failure, timed
from actors.job import Content, Gang, Job, Left, Outcome, Request, Result, Setup, Value, values_of
from actors.process import Machine, Process, allowing, this_machine

ATTEMPTS = 3  # workers that may die with the same job, or in a row in one set-up, before the run fails


class JobFailed(Exception):
    """A job raised an exception, or its workers died again and again.

    traceback: the text of the worker's traceback. memory: whose memory ran out, if that is the cause. frames: the calls
    in code of users' own that led to it.
    """

    def __init__(
        self, label: str, cause: str, traceback: str, memory: Memory | None = None, frames: tuple[Frame, ...] = ()
    ) -> None:
        super().__init__(label, cause, traceback, memory, frames)
        self.label, self.cause, self.traceback, self.memory, self.frames = label, cause, traceback, memory, frames

    @classmethod
    def by(cls, error: BaseException, label: str) -> Self:
        """Returns the JobFailed of a job that raised an error."""
        return cls(label, *Failure.by(error))

    def __str__(self) -> str:
        return f"{self.label}: {self.cause}"


class ValuesLost(JobFailed):
    """Values that later jobs need were lost with a node. A checkpoint may have them."""


class SchedulerDied(JobFailed):
    """The process that carried out the program is gone. The program is not at fault."""


class MissingResources(Exception):
    """There is no cluster, or it does not have the resources that a run asks for."""


@dataclass(frozen=True)
class Needs:
    """What a worker needs of the node that it is on."""

    cpus: float = 0.0
    gpus: float = 0.0  # or a fraction of one
    labels: Mapping[str, str] = field(default_factory=dict)  # Ray's selectors of the node's labels
    with_driver: bool = False  # whether it must be the node of the process that started the run


class Group(NamedTuple):
    """A group of workers of one kind."""

    name: str
    factory: Callable[[], Any]  # picklable; called once in each worker
    workers: int  # how many it has
    needs: Needs = Needs()  # of each worker


class Pool(ABC):
    """Groups of workers, to which jobs are submitted.

    machines: what each worker's process computes with, by the worker's name, as of its last set-up. processes: these
    processes, by the same names. warnings: texts that a user who watches the run should see during it.
    """

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.processes: dict[str, Process] = {}
        self.warnings: list[str] = []

    @abstractmethod
    def start(self, group: Group) -> None:
        """Makes the group's workers."""

    @abstractmethod
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
        job = Job.of(group, request, priority, label)
        self._take_on(job)
        return job

    @abstractmethod
    def _take_on(self, job: Job[Any, Any]) -> None:
        """Sees to it that a new job gets done."""

    @abstractmethod
    def wait(self) -> None:
        """Waits until at least one more job is done. Raises JobFailed, or KeyboardInterrupt if the run must end."""

    @abstractmethod
    def spare(self, seconds: float) -> None:
        """Lets `wait` continue after an interruption, but for so many seconds only; then it raises
        KeyboardInterrupt."""

    @abstractmethod
    def put(self, content: Any) -> Value[Any]:
        """Returns a value that holds the content, without a job."""

    @abstractmethod
    def get(self, value: Value[Content]) -> Content:
        """Returns the content of a value whose job is done. It must not be changed."""

    @abstractmethod
    def size(self, group: str) -> int:
        """Returns how many workers of a group can be given jobs now; at least 1."""

    @abstractmethod
    def close(self) -> None:
        """Ends all workers."""


def finished(pool: Pool, job: Job[Result, Left]) -> Job[Result, Left]:
    """Waits until a job is done, and returns it. Raises JobFailed if it or another job fails."""
    while not job.done:
        pool.wait()
    return job


class InlinePool(Pool):
    """A pool that makes one worker for each group, however many it asks for. Answers are as on Ray."""

    def __init__(self) -> None:
        super().__init__()
        self._workers: dict[str, Any] = {}  # by group
        self._process = Process.this()
        self.processes["inline"] = self._process

    def start(self, group: Group) -> None:
        """Makes the group's worker. No signal ends that, because the process would abort in the import of torch."""
        self._workers[group.name] = _guarded(f"{group.name}: start", group.factory)

    def set_up(self, setups: dict[str, Setup]) -> None:
        for group, setup in setups.items():
            self._workers[group] = _guarded(f"{group}: set-up", _allowed, setup.build, self._workers[group])
            self.machines[group] = this_machine()

    def _take_on(self, job: Job[Any, Any]) -> None:
        assert job.request is not None
        answer, took = _guarded(job.label, _allowed, timed, job.request.call, self._workers[job.group], Gang())
        left = values_of(answer.left)
        if len(left) != len(job.values):
            raise JobFailed(job.label, f"must leave {len(job.values)} values, left {len(left)}", "")
        for value, given in zip(job.values, left, strict=True):
            value.content = given.content
        job.end(Outcome(answer.result, "inline", took, self._process))

    def wait(self) -> None:
        """Does nothing: every job is already done."""

    def spare(self, seconds: float) -> None:
        """Does nothing: every job is already done."""

    def put(self, content: Any) -> Value[Any]:
        return Value(content)

    def get(self, value: Value[Content]) -> Content:
        content: Content = value.content
        return content

    def size(self, group: str) -> int:
        return 1

    def close(self) -> None:
        self._workers.clear()


def _guarded(label: str, call: Any, *args: Any) -> Any:
    """Returns what the call returns. Raises JobFailed with the label if it raises an exception."""
    try:
        return call(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the hosted code raises is named and passed on
        raise JobFailed.by(error, label) from error


def _allowed(call: Any, *args: Any) -> Any:
    """Returns what the call returns. A signal may end it."""
    with allowing():
        return call(*args)
