"""The kinds of parts: for each key of a scenario file that names one of several parts, all that it can name."""

from functools import cache
from typing import Any, NamedTuple

from raysim.local import Local
from raysim.parts.part import OneOf, Part, names_of, one_of
from raysim.scenario.explain import walk
from raysim.scenario.schema import Scenario
from raysim.schedules.schedulable import schedules


class Kind(NamedTuple):
    """What one key of a scenario file can name, such as the delays."""

    key: str  # its dotted path, such as world.delay
    choice: OneOf
    owner: type[Part]  # the block that has the key, or the first part that has it

    @property
    def word(self) -> str:
        """The last word of its key, by which it is usually called."""
        return self.key.rpartition(".")[2]

    @property
    def parts(self) -> tuple[type[Part], ...]:
        """The parts that it can name, which come with raysim."""
        return self.choice.parts

    def holds(self, part: type[Part]) -> bool:
        """Whether the key can hold the part, which may be a user's own class."""
        return issubclass(part, self.choice.bases)


@cache
def kinds() -> tuple[Kind, ...]:
    """Returns all kinds, in the order of the scenario file. Where several keys name the same parts, the first one."""
    Scenario.model_rebuild()  # classes are deferred, and keys get to know their base classes when they are completed
    found: list[Kind] = []
    below = [Kind(path, choice, owner) for path, owner, field in walk(Scenario) if (choice := one_of(field))]
    blocks = [kind for kind in below if not kind.key.startswith("algorithm.")]
    for kind in below:
        # An optimiser, say, is one of `local` first, though some algorithms come before that in the file.
        others = (*found, *(blocks if kind not in blocks else ()))
        if not any({*kind.parts} <= {*other.parts} for other in others):
            found.append(kind)
    # A schedule can stand for any number of an algorithm or of `local`; this is the one that it mostly stands for.
    return (*found, Kind("local.lr", schedules(), Local))


def kind_of(part: type[Part]) -> Kind | None:
    """Returns the kind of a part, which may be a user's own class; None if no key can name such a part."""
    return next((kind for kind in kinds() if kind.holds(part)), None)


def find_kinds(word: str) -> list[Kind]:
    """Returns the kinds with this key, such as world.delay, or whose key ends with this word."""
    return [kind for kind in kinds() if word in (kind.key, kind.word)]


def find_parts(name: str) -> list[tuple[Kind, type[Part]]]:
    """Returns all parts of this name, with their kinds. After a key and a dot, as in model.lora: those of that kind."""
    key, _, last = name.rpartition(".")
    found = [kind for kind in kinds() if key in ("", kind.key, kind.word)]
    return [(kind, part) for kind in found for part in kind.parts if last in names_of(part)]


def find_keys(word: str, root: type[Part]) -> dict[str, dict[type[Part], Any]]:
    """Returns, by dotted path, what has the key at this path, or a key of this name in a block: blocks and parts, each
    with the key's annotation."""
    found: dict[str, dict[type[Part], Any]] = {}
    for path, owner, annotation in walk(root):
        if path == word or (path.rpartition(".")[2] == word and not names_of(owner)):
            found.setdefault(path, {})[owner] = annotation
    return found
