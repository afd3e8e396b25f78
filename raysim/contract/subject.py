"""What is tested: a part that comes with raysim, or a user's own class, with the keys that it is given."""

from __future__ import annotations

import importlib
from operator import attrgetter
from typing import Any

from raysim.part import Part
from raysim.scenario.kinds import Kind, kind_of


class NotAPart(ValueError):
    """A name leads to no class that a scenario file could name. Its text says what must hold."""


def import_class(path: str) -> Any:
    """Returns what is at module:Class. Raises NotAPart if it cannot be imported."""
    module, _, attribute = path.partition(":")
    try:
        return attrgetter(attribute)(importlib.import_module(module))
    except Exception as error:  # a module can raise anything while it is imported
        text = "must be module:Class, with the module here or on PYTHONPATH"
        raise NotAPart(f"{text}, got {path!r}, whose import raises {type(error).__name__}: {error}") from error


def own_part(path: str) -> tuple[Kind, type[Part]]:
    """Imports the class at module:Class, and returns it with its kind. Raises NotAPart if it can be no part."""
    found = import_class(path)
    kind = kind_of(found) if isinstance(found, type) and issubclass(found, Part) else None
    if kind is None:
        text = "must name a subclass of a base that raysim has for parts, such as raysim.algorithms.Central"
        raise NotAPart(f"{text}, got {path!r}, which is {found!r}")
    if lacking := sorted(getattr(found, "__abstractmethods__", ())):
        raise NotAPart(f"must name a class that defines {', '.join(lacking)}, got {path!r}, which does not")
    return kind, found
