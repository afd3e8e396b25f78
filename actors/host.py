"""The Ray actor that hosts what a factory builds."""

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from actors.gang import Address, Alone, Door, Gang, GangBroken, Members, Seat
from actors.job import Request, Setup, Took, Value, values_of


def describe(error: Exception) -> str:
    """In a line: its class, its text, and the notes that were added on its way."""
    return " - ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


class Failure(NamedTuple):
    """An exception, as a value: Ray would wrap and log it, and it might not be picklable."""

    cause: str
    traceback: str
    broken: bool = False  # because another member of a gang is gone


class Done(NamedTuple):
    """What a job gave."""

    result: Any
    took: Took
    kept: dict[int, int]  # the places of values left that the request had, and their places among those


class Host:
    """Client and aggregator actors are of this class; it is made an actor where Ray is loaded."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self._failure: Failure | None = None
        self._door: Door | None = None
        self._gang: Members | None = None
        self._worker: Any = None
        try:
            self._worker = factory()
        except Exception as error:  # reported by the first call: an actor that fails here only dies
            self._failure = _failure(error)

    def listen(self, host: str) -> Address:
        """Where a gang can meet of which this is the first."""
        self._door = Door(host)
        return self._door.address

    def set_up(self, setup: Setup, *contents: Any) -> Failure | None:
        """Does the set-up. contents: what its values hold."""
        if self._failure:
            return self._failure
        _fill(setup, contents)
        try:
            self._worker = setup.build(self._worker)
        except Exception as error:  # whatever the hosted code raises is reported
            return _failure(error)
        return None

    def call(self, request: Request[Any], seat: Seat | None, *contents: Any) -> Any:
        """Done and the values that the request leaves, or a Failure and as many times None.

        contents: what the request's values hold. seat: the worker's place in the gang that does it, if one does; only
        its first member gives values.
        """
        values = 0 if seat and seat.rank else request.leaves
        answer = self._failure or self._call(request, seat, contents)
        if isinstance(answer, Failure):
            answer = (answer, *[None] * values)
        return answer if values else answer[0]

    def _call(self, request: Request[Any], seat: Seat | None, contents: tuple[Any, ...]) -> Any:
        given = _fill(request, contents)
        try:
            (result, left), took = timed(request.call, self._worker, self._join(seat) if seat else Alone())
            if seat and seat.rank:
                return (Done(None, took, {}),)
            if len(left) != request.leaves:
                raise ValueError(f"{request.name} must leave {request.leaves} values, left {len(left)}")
            kept = {place: given.index(value) for place, value in enumerate(left) if isinstance(value, Value)}
            return (Done(result, took, kept), *(None if isinstance(value, Value) else value for value in left))
        except Exception as error:  # whatever the hosted code raises is reported
            return _failure(error)

    def _join(self, seat: Seat) -> Gang:
        if seat.size == 1:
            return Alone()
        if self._gang is None:  # it stays the same: where one of its members dies, all are replaced
            self._gang = Members(seat, None if seat.rank else self._door)
        return self._gang


def _fill(request: Request[Any] | Setup, contents: tuple[Any, ...]) -> list[Value[Any]]:
    """Gives a request's values what they hold, and returns them."""
    values = values_of(request)
    for value, content in zip(values, contents, strict=True):
        value.content = content
    return values


def timed(call: Callable[..., Any], *args: Any) -> tuple[Any, Took]:
    """What the call returns, and when it ran."""
    began, counted = time.time(), time.perf_counter()
    answer = call(*args)
    return answer, Took(began, time.perf_counter() - counted)


def _failure(error: Exception) -> Failure:
    text = "".join(traceback.format_exception(error))
    return Failure(describe(error), text, isinstance(error, GangBroken))
