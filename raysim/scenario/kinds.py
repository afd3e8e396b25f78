"""The kinds of parts: for each key of a scenario file that names one of several parts, all that it can name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_args

from raysim.part import OneOf, Part, names_of, parts_of
from raysim.scenario.schema import Scenario


class Kind(NamedTuple):
    """What one key of a scenario file can name, such as the delays."""

    key: str  # its dotted path, such as world.delay
    bases: tuple[type[Part], ...]  # the classes of which all of these parts are subclasses
    parts: tuple[type[Part], ...]
    owner: type[Part]  # the block, or the first part, that has the key

    @property
    def word(self) -> str:
        """The last word of its key, by which it is usually called."""
        return self.key.rpartition(".")[2]

    def holds(self, part: type[Part]) -> bool:
        """Whether the key can hold the part, which may be a user's own class."""
        return issubclass(part, self.bases)


@cache
def kinds() -> tuple[Kind, ...]:
    """Returns all kinds, in the order of the scenario file. Where several keys name the same parts, the first one."""
    found: list[Kind] = []
    for kind in _below(Scenario, ""):
        if not any(set(kind.parts) <= set(other.parts) for other in found):
            found.append(kind)
    return tuple(found)


def kind_of(part: type[Part]) -> Kind | None:
    """Returns the kind of a part, which may be a user's own class; None if no key can name such a part."""
    return next((kind for kind in kinds() if kind.holds(part)), None)


def find_kinds(word: str) -> list[Kind]:
    """Returns the kinds that are called so: by their key, such as world.delay, or by its last word."""
    return [kind for kind in kinds() if word in (kind.key, kind.word)]


def find_parts(name: str) -> list[tuple[Kind, type[Part]]]:
    """Returns all parts that scenario files call so, with their kinds."""
    return [(kind, part) for kind in kinds() for part in kind.parts if name in names_of(part)]


def _below(owner: type[Part], path: str) -> Iterator[Kind]:
    """Yields the kinds of all keys of a block, and of the blocks and parts below it."""
    for key, field in owner.model_fields.items():
        annotation = field.rebuild_annotation()
        for base, choice in _choices(annotation):
            yield Kind(path + key, base, choice.parts, owner)
        for part in parts_of(annotation):
            yield from _below(part, f"{path}{key}.")


def _choices(annotation: Any) -> Iterator[tuple[tuple[type[Part], ...], OneOf]]:
    """Yields the bases and the choice of parts in an annotation such as Annotated[Delay, OneOf(DELAYS)] | None."""
    choices = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, OneOf)]
    inner = get_args(annotation)
    if choices:
        yield get_args(inner[0]) or (inner[0],), choices[0]
    else:
        for alternative in inner:
            yield from _choices(alternative)
