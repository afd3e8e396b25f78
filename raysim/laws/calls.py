"""Calls methods of an algorithm, each of them twice, and keeps what they were given and what they returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from raysim.algorithms import Central, Peer
from raysim.laws.law import Broken
from raysim.laws.records import Call, copied, require_record
from raysim.parts.rng import seed_globals
from raysim.parts.standard_state import standard_state
from raysim.terms import Record


class Calls:
    """The calls of an algorithm's methods, in their order."""

    def __init__(self, algorithm: Central | Peer) -> None:
        self._name = type(algorithm).__name__
        self._calls: list[tuple[str, Call]] = []

    def of(self, *methods: str) -> list[Call]:
        """Returns the calls of some methods, or of all."""
        return [call for method, call in self._calls if method in methods or not methods]

    def where(self, method: str, which: str = "") -> str:
        """Returns the name of a call, for messages."""
        return f"{self._name}.{method}, {which}" if which else f"{self._name}.{method}"

    def record(self, method: str, which: str, what: str, call: Callable[..., Any], *given: Any) -> Record:
        """Calls a method that returns one record, and returns that. what: what the record is, for messages."""
        return require_record(self.where(method, which), self(method, which, call, *given), what)

    def pair(self, method: str, which: str, what: tuple[str, str], call: Callable[..., Any], *given: Any) -> Any:
        """Calls a method that returns two records, and returns them."""
        where, found = self.where(method, which), self(method, which, call, *given)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise Broken(f"{where}: must return two records, {what[0]} and {what[1]}, got {found!r}")
        return require_record(where, found[0], what[0]), require_record(where, found[1], what[1])

    def __call__(self, method: str, which: str, call: Callable[..., Any], *given: Any) -> Any:
        """Calls a method twice with equal arguments, and returns what the first call returned.

        Raises Broken if it raises anything. given: its arguments; the records among them are copied for each call.
        """
        where = self.where(method, which)
        made = []
        for _ in range(2):
            copies = [copied(value) if isinstance(value, dict) else value for value in given]
            with standard_state():
                seed_globals(0, where)  # as the engine does
                try:
                    found = call(*copies)
                except (Exception, SystemExit) as error:
                    raise Broken(f"{where}: raises {type(error).__name__}: {error}") from error
            made.append((found if type(found) is tuple else (found,), _records(copies), found))
        (returned, changed, found), (again, _, _) = made
        self._calls.append((method, Call(where, changed, _records(given), returned, again)))
        return found


def _records(values: Any) -> tuple[Record, ...]:
    return tuple(value for value in values if isinstance(value, dict))
