"""Jobs: what a worker is asked to do, what it answers, and the values that jobs leave for later jobs.

A job carries a `Request`, which is carried out on a worker. The `Answer` has a small result, which comes back
to the caller, and values, which stay with the workers until a later request refers to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from actors.process import Process


class Gang:
    """The members of a gang, as one of them sees it. This one is alone."""

    rank, size = 0, 1

    def gather(self, mine: Any) -> list[Any]:
        """Returns what every member passed, in order of rank. All members must call it."""
        return [mine]


class Seat(NamedTuple):
    """A worker's place in a gang of several."""

    rank: int
    members: tuple[Any, ...]  # Ray's handles of all of their actors, in order of rank


Content = TypeVar("Content")
Result = TypeVar("Result")
Left = TypeVar("Left")


@dataclass(eq=False)
class Value(Generic[Content]):
    """A reference to something that a job leaves. It is freed when nobody holds the reference any more.

    Put a value into a request, and the worker that carries out the request finds the thing itself in `content`.
    Everywhere else, only the pool uses `content`.
    """

    content: Content | Any = None
    job: Job[Any, Any] | None = None  # the job that will leave it; None once that job is done
    former: Value[Content] | None = None
    """The value of the job's request that the job may pass on in its place; None: none, or the job is done."""

    @property
    def candidates(self) -> list[Any]:
        """Its content and, while its job is not done, those that the job may pass on in its place: the newest first."""
        value, found = self, [self.content]
        while value.job is not None and value.former is not None:
            value = value.former
            found.append(value.content)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles a value without its content, which the pool sends as its own argument.

        Ray shares memory without copying only for such arguments, not for what lies within them.
        """
        return Value, ()


class Answer(NamedTuple, Generic[Result, Left]):
    """What a request's `call` returns."""

    result: Result  # small: it is sent back to the process that submitted the job
    left: Left
    """Values with their contents, in a named tuple. A value of the request may be passed on. It is not stored again if
    it is the `former` of the value that `Request.leaves` returns in its place."""


class Request(ABC, Generic[Result, Left]):
    """What a worker must do. A subclass is a frozen, picklable dataclass.

    Result is what comes back, and Left a named tuple of the values that stay with the workers.
    A request is carried out again if its worker dies. So it must give the same answer every time, and must not change
    anything that it was given.
    """

    name: ClassVar[str]
    """The kind of job, for tables and dashboards. Ray keeps metrics for each name, so there must be few names."""
    together: ClassVar[bool] = False
    """Whether all workers of the group carry it out together, as a gang. Only the first one's answer is kept."""

    @abstractmethod
    def leaves(self) -> Left:
        """Returns the values that the job will leave, still empty, as `call` will return them."""

    @abstractmethod
    def call(self, worker: Any, gang: Gang) -> Answer[Result, Left]:
        """Carries out the request. It runs on the worker, whose class a subclass names in place of Any.

        gang: who does so together; one alone unless `together`.
        """


class Query(Request[Result, tuple[()]]):
    """A request that leaves nothing with the workers, and only asks for a result."""

    def leaves(self) -> tuple[()]:
        return ()

    def call(self, worker: Any, gang: Gang) -> Answer[Result, tuple[()]]:
        return Answer(self.ask(worker), ())

    @abstractmethod
    def ask(self, worker: Any) -> Result:
        """Returns the result. It runs on the worker."""


class Setup(ABC):
    """What every worker of a group does before its first job. A subclass is a frozen, picklable dataclass."""

    @abstractmethod
    def build(self, worker: Any) -> Any:
        """Returns what replaces the worker, for example one that has the data; it runs on the worker."""


class Took(NamedTuple):
    """When a job ran and for how long, by the clock of the worker's machine."""

    started: float  # seconds since the epoch
    seconds: float


class Outcome(NamedTuple, Generic[Result]):
    """What is known of a job once it is done."""

    result: Result
    worker: str  # the name of the worker that did it
    took: Took
    process: Process | None = None  # of that worker; None if its group has no set-up


@dataclass(eq=False)
class Job(Generic[Result, Left]):
    """A request that was submitted to a pool."""

    group: str
    request: Request[Result, Left] | None  # None once the job is done, so that the values in it can be freed
    left: Left  # the values that it leaves, or will leave
    values: list[Value[Any]]  # the same values as a list
    name: str
    label: str  # what error messages call the job
    priority: tuple[int, ...] = ()  # among jobs that are ready, the lowest runs first
    together: bool = False  # whether all workers of the group do it, as a gang
    attempts: int = 0  # how many attempts ended with the death of the worker
    outcome: Outcome[Result] | None = None  # None until it is done

    @classmethod
    def of(cls, group: str, request: Request[Result, Left], priority: tuple[int, ...], label: str) -> Job[Result, Left]:
        """Makes a job for a request, with empty values for what it will leave."""
        left = request.leaves()
        values = values_of(left)
        job = cls(group, request, left, values, request.name, label or request.name, priority, request.together)
        for value in values:
            value.job = job
        return job

    @cached_property
    def needs(self) -> list[Value[Any]]:
        """The values that its request refers to, which are looked for once. It must not be asked for once the job is
        done, because then the request is gone."""
        assert self.request is not None
        return values_of(self.request)

    @property
    def done(self) -> bool:
        return self.outcome is not None

    @property
    def result(self) -> Result:
        """The result of the answer. Raises RuntimeError before the job is done."""
        return self.ended.result

    @property
    def ended(self) -> Outcome[Result]:
        """What is known of the job. Raises RuntimeError before it is done."""
        if self.outcome is None:
            raise RuntimeError(f"{self.label}: must be done to have an outcome, and is not; wait for it first")
        return self.outcome

    def end(self, outcome: Outcome[Result]) -> None:
        """Marks the job as done. The contents of its values must be set before."""
        self.outcome, self.request = outcome, None
        self.__dict__.pop("needs", None)  # like the request above, so that its values can be freed
        for value in self.values:
            value.job = value.former = None  # else each would keep the one before it


def values_of(holder: Any) -> list[Value[Any]]:
    """Returns the values that a request, a set-up, or what a job leaves holds: each once, in a fixed order.

    They are looked for in fields, and in tuples, lists and dictionaries there.
    """
    found: dict[Value[Any], None] = {}
    _collect(vars(holder).values() if isinstance(holder, Request | Setup) else [holder], found)
    return list(found)


def _collect(items: Iterable[Any], found: dict[Value[Any], None]) -> None:
    for item in items:
        if isinstance(item, Value):
            found[item] = None
        elif isinstance(item, (tuple, list)):  # a tuple of types, because a union would be made anew each time
            _collect(item, found)
        elif isinstance(item, dict):
            _collect(item.values(), found)
