"""What a worker process does: it hosts the worker that a factory builds, and carries out set-ups and requests."""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

from actors.fault import Frame, Memory, describe, exhausted, frames_of, trace
from actors.job import Gang, Request, Seat, Setup, Took, Value, values_of
from actors.process import Machine, Process, state_of_process, this_machine


class Failure(NamedTuple):
    """An exception as a value. Ray would wrap and log an exception that is raised, and it might not be picklable."""

    cause: str
    traceback: str
    memory: Memory | None = None  # whose memory ran out, if that is the cause
    frames: tuple[Frame, ...] = ()  # the calls in the user's own code that led to it

    @classmethod
    def by(cls, error: BaseException, where: str = "") -> Self:
        """Returns an error as a value. where: what is said of the place where it was raised."""
        cause = describe(error) + (f" - {where}" if where else "")
        return cls(cause, trace(error), exhausted(error), frames_of(error))


class Done(NamedTuple):
    """The answer of a job that succeeded, without the contents of its values."""

    result: Any
    took: Took
    passed: tuple[int, ...] = ()  # places of those values that the request brought and the job passes on


class Passed(NamedTuple):
    """Stands for the content of a value that the job passes on from its request, so that it is not stored again."""


class Ready(NamedTuple):
    """The answer of a set-up that succeeded."""

    machine: Machine
    process: Process


class Host:
    """Hosts one worker at a time, and answers every call with a value, be it a Failure.

    It is the base of the actors' class, `actors.actors.RayHost`, and serves in local processes as it is.
    """

    def __init__(self, process: Callable[[], Process] = Process.this) -> None:
        """process: describes the process."""
        self._process = process
        self._state: Any = None  # of the process, once the set-ups of its first run had imported what they need
        self._forget()

    def _forget(self) -> None:
        self._failure: Failure | None = None
        self._worker: Any = None

    def open(self, factory: Callable[[], Any]) -> Failure | None:
        """Makes the worker, which may take seconds. Returns what failed. A run calls it once, before all else."""
        self._worker = self._tried(factory)
        self._failure = self._worker if isinstance(self._worker, Failure) else None
        return self._failure

    def _tried(self, call: Callable[..., Any], *args: Any) -> Any:
        """Returns what a call of hosted code returns, or as a Failure whatever it raises: raised, the actor would die
        silently."""
        try:
            return call(*args)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Failure.by(error, self.where())

    def rest(self) -> bool:
        """Lets go of the worker, and of all that the run left here. A run calls it last.

        Returns whether another run may follow: whether the state of the process is still that after the first set-up.
        """
        self._forget()
        gc.collect()
        if (torch := sys.modules.get("torch")) and torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        return bool(self._state == state_of_process())

    def set_up(self, setup: Setup, *contents: Any) -> Failure | Ready:
        """Does a set-up. Returns what this process is, or what failed. contents: those of the set-up's values."""
        if self._failure:
            return self._failure
        _fill(setup, contents)
        built = self._tried(setup.build, self._worker)
        if isinstance(built, Failure):
            return built
        self._worker = built
        self._state = self._state or state_of_process()
        return Ready(this_machine(), self._process())

    def call(self, request: Request[Any, Any], seat: Seat | None, numbers: Sequence[int], *contents: Any) -> Any:
        """Carries out a request. Returns Done and the values that it leaves, or Failure and None for each value.

        contents: the candidates for the content of each of the request's values, the newest first. numbers: how many
        each value has. seat: the worker's place in the gang that carries it out; None without a gang. Only the first
        member of a gang returns values.
        """
        leaves = [] if seat and seat.rank else values_of(request.leaves())
        answer = self._failure or self._tried(self._call, request, leaves, seat, _chosen(numbers, contents))
        if isinstance(answer, Failure):
            answer = (answer, *[None] * len(leaves))
        return answer if leaves else answer[0]

    def _call(
        self, request: Request[Any, Any], leaves: list[Value[Any]], seat: Seat | None, contents: list[Any]
    ) -> Any:
        _fill(request, contents)
        self._state = self._state or state_of_process()  # a group without set-ups has none yet
        answer, took = timed(request.call, self._worker, self.gang(seat))
        if seat and seat.rank:
            return (Done(None, took),)
        left = values_of(answer.left)
        if len(left) != len(leaves):
            raise ValueError(f"{request.name} must leave {len(leaves)} values, left {len(left)}")
        passed = tuple(place for place, value in enumerate(left) if value is leaves[place].former)
        contents = [Passed() if place in passed else value.content for place, value in enumerate(left)]
        return (Done(answer.result, took, passed), *contents)

    def where(self) -> str:
        """Returns what error messages say of where this process is; empty if that is clear."""
        return ""

    def gang(self, seat: Seat | None) -> Gang:
        """Returns the gang in which it has a seat; None: it is alone, as local processes are."""
        return Gang()


def _fill(request: Request[Any, Any] | Setup, contents: Sequence[Any]) -> None:
    """Puts the contents into the values of a request or a set-up."""
    for value, content in zip(values_of(request), contents, strict=True):
        value.content = content


def _chosen(numbers: Sequence[int], contents: Sequence[Any]) -> list[Any]:
    """Returns the first content that is not passed on, for each value. The arguments are those of `Host.call`."""
    left = iter(contents)
    candidates = (list(islice(left, number)) for number in numbers)
    return [next(content for content in found if not isinstance(content, Passed)) for found in candidates]


def timed(call: Callable[..., Any], *args: Any) -> tuple[Any, Took]:
    """Returns what the call returns, and when it ran."""
    began, counted = time.time(), time.perf_counter()
    answer = call(*args)
    return answer, Took(began, time.perf_counter() - counted)
