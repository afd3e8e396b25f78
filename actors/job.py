"""Jobs: what a worker is asked to do, what it answers, and the values that jobs leave for one another.

A job carries a `Request`, a frozen value whose `call` runs on the worker. Its `Answer` has a small result, which comes
back, and values, which stay where they are until a later request names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from actors.gang import Gang

Content = TypeVar("Content")
Result = TypeVar("Result")


@dataclass(eq=False)
class Value(Generic[Content]):
    """Something that a job leaves, there once the job is done. It is freed when nobody holds it any more.

    A value may stand in a request for what it holds. The worker that gets the request finds that in `content`;
    everywhere else `content` is the pool's business.
    """

    content: Content | Any = None
    job: Job[Any] | None = None  # the job that is to leave it; None once it is there

    def __reduce__(self) -> tuple[Any, ...]:
        """A value travels empty, and the pool sends what it holds beside it: Ray shares only an argument of the call
        itself without copying it."""
        return Value, ()


class Answer(NamedTuple, Generic[Result]):
    """What a request's `call` gives."""

    result: Result  # small: it comes back to whoever submitted the job
    values: tuple[Any, ...] = ()  # kept; a Value of the request stands for itself, and is not stored again


class Request(ABC, Generic[Result]):
    """What a worker is to do. A subclass is a frozen dataclass, picklable, and says how to call the worker.

    A request is carried out again if its worker dies, so it must give the same answer every time and change nothing
    that it was given.
    """

    name: ClassVar[str]
    """The kind of job, for tables and dashboards. Each new name adds series to Ray's metrics, so there are few."""
    together: ClassVar[bool] = False
    """Whether all workers of the group carry it out as a gang. All must then answer alike; the first one's is kept."""

    @property
    def leaves(self) -> int:
        """How many values the answer has."""
        return 0

    @abstractmethod
    def call(self, worker: Any, gang: Gang) -> Answer[Result]:
        """Runs on the worker. gang: who carries it out together, a gang of one unless `together` is set."""


class Setup(ABC):
    """What every worker of a group does before its first job. A subclass is a frozen dataclass, picklable."""

    @abstractmethod
    def build(self, worker: Any) -> Any:
        """Runs on the worker, and returns what takes its place there: such as the same with the data that it needs."""


class Took(NamedTuple):
    """When a job ran, by the clock of its worker's machine."""

    started: float  # seconds since the epoch
    seconds: float


class Outcome(NamedTuple, Generic[Result]):
    """What became of a job."""

    result: Result
    worker: str  # the name of the worker that did it
    took: Took


@dataclass(eq=False)
class Job(Generic[Result]):
    """A request that was submitted."""

    group: str
    request: Request[Result] | None  # None once it is done, or what it refers to would stay alive
    name: str
    label: str  # for messages about it
    priority: tuple[int, ...] = ()  # low first, among jobs that can run
    together: bool = False  # done by all workers of the group, as a gang
    attempts: int = 0  # how many ended with the death of the worker
    outcome: Outcome[Result] | None = None  # None until it is done
    values: list[Value[Any]] = field(default_factory=list)  # that it leaves

    @classmethod
    def of(cls, group: str, request: Request[Result], priority: tuple[int, ...], label: str) -> Job[Result]:
        """A new job, and the values that it is to leave."""
        job = cls(group, request, request.name, label or request.name, priority, request.together)
        job.values.extend(Value(job=job) for _ in range(request.leaves))
        return job

    @property
    def done(self) -> bool:
        return self.outcome is not None

    @property
    def result(self) -> Result:
        """The answer's result. RuntimeError before the job is done."""
        return self._ended().result

    @property
    def worker(self) -> str:
        """The name of the worker that did it. RuntimeError before the job is done."""
        return self._ended().worker

    @property
    def took(self) -> Took:
        """When it ran. RuntimeError before the job is done."""
        return self._ended().took

    def _ended(self) -> Outcome[Result]:
        if self.outcome is None:
            raise RuntimeError(f"{self.label}: must be done to have an outcome, and is not")
        return self.outcome

    def end(self, outcome: Outcome[Result]) -> None:
        """Marks the job as done. The contents of its values are there by then."""
        self.outcome, self.request = outcome, None
        for value in self.values:
            value.job = None  # else the two keep each other, and what the job left, until the garbage collector comes


def values_of(request: Request[Any] | Setup) -> list[Value[Any]]:
    """The values in a request's fields, and in tuples and dictionaries there: each once, in a fixed order."""
    found: dict[Value[Any], None] = {}
    _collect(vars(request).values(), found)
    return list(found)


def _collect(items: Iterable[Any], found: dict[Value[Any], None]) -> None:
    for item in items:
        if isinstance(item, Value):
            found[item] = None
        elif isinstance(item, tuple):
            _collect(item, found)
        elif isinstance(item, dict):
            _collect(item.values(), found)
