"""The Ray actor that hosts what a factory builds."""

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from actors.gang import Address, Alone, Door, Gang, GangBroken, Members, Seat
from actors.pool import Took


def describe(error: Exception) -> str:
    """In a line: its class, its text, and the notes that were added on its way."""
    return " - ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


class Failure(NamedTuple):
    """An exception, as a value: Ray would wrap and log it, and it might not be picklable."""

    cause: str
    traceback: str
    broken: bool = False  # because another member of a gang is gone


class Done(NamedTuple):
    """What a call gave."""

    result: Any
    took: Took
    kept: dict[int, int]  # values that are arguments as they came: the place of the value, and that of the argument


class Host:
    """Client and aggregator actors are of this class; it is made an actor where Ray is loaded."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self._failure: Failure | None = None
        self._door: Door | None = None
        self._gang: Members | None = None
        try:
            self._hosted = factory()
        except Exception as error:  # reported by the first call: an actor that fails here only dies
            self._failure = _failure(error)

    def listen(self, host: str) -> Address:
        """Where a gang can meet of which this is the first."""
        self._door = Door(host)
        return self._door.address

    def call(self, method: str, values: int, seat: Seat | None, *args: Any) -> Any:
        """Done and `values` values, or a Failure and as many times None. seat: in the gang that does it, if one does;
        only its first member gives values."""
        answer = self._failure or self._call(method, values, seat, args)
        if isinstance(answer, Failure):
            answer = (answer, *[None] * values)
        return answer if values else answer[0]

    def _call(self, method: str, values: int, seat: Seat | None, args: tuple[Any, ...]) -> Any:
        try:
            company = [self._join(seat)] if seat else []
            (result, *left), took = timed(getattr(self._hosted, method), *company, *args)
            if seat and seat.rank:
                return (Done(None, took, {}),)
            if len(left) != values:
                raise ValueError(f"{method} must leave {values} values, left {len(left)}")
            kept = {i: j for i, value in enumerate(left) for j, arg in enumerate(args) if value is arg}
            return (Done(result, took, kept), *(None if i in kept else value for i, value in enumerate(left)))
        except Exception as error:  # whatever the hosted code raises is reported
            return _failure(error)

    def _join(self, seat: Seat) -> Gang:
        if seat.size == 1:
            return Alone()
        if self._gang is None:  # it stays the same: where one of its members dies, all are replaced
            self._gang = Members(seat, None if seat.rank else self._door)
        return self._gang


def timed(call: Callable[..., Any], *args: Any) -> tuple[Any, Took]:
    """What the call returns, and when it ran."""
    began, counted = time.time(), time.perf_counter()
    answer = call(*args)
    return answer, Took(began, time.perf_counter() - counted)


def _failure(error: Exception) -> Failure:
    text = "".join(traceback.format_exception(error))
    return Failure(describe(error), text, isinstance(error, GangBroken))
