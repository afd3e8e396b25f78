"""Finds the user's own code in which an error was raised, and the key of the scenario that names it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from actors.fault import OURS, Frame
from raysim.parts.own import path_of
from raysim.parts.part import Part
from raysim.scenario.own_modules import by_key


class Culprit(NamedTuple):
    """Where an error was raised."""

    key: str | None  # the key of the scenario that names the code; None if it is not known
    function: str
    place: str  # file:line

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


def culprit_of(frames: Sequence[Frame], scenario: Part) -> Culprit | None:
    """Returns where in the user's own code an error was raised; None if no such code was called.

    The key is that of the innermost call of a class or function that the scenario names, or of a module that only one
    key names.
    """
    if not frames:
        return None
    named = dict(reversed([*_named(scenario)]))
    for function, _ in reversed(frames):
        module = function.partition(":")[0]
        exact = [key for path, key in named.items() if f"{function}.".startswith(f"{path}.")]
        keys = exact or list({key for path, key in named.items() if path.partition(":")[0] == module})
        if exact or len(keys) == 1:
            return Culprit(keys[0], *frames[-1])
    return Culprit(None, *frames[-1])


def _named(scenario: Part) -> Iterator[tuple[str, str]]:
    """Yields (module:name, key) of the user's own classes and functions that a scenario names, and of the bases of
    the classes."""
    for key, value in by_key(scenario):
        if isinstance(value, Part):
            own = [cls for cls in type(value).__mro__ if cls.__module__.partition(".")[0] not in OURS]
            yield from ((path_of(cls), key) for cls in own if issubclass(cls, Part))
        elif isinstance(value, str) and ":" in value:
            yield value, key.removesuffix(".function")
