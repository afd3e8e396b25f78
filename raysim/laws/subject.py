"""What is tested: a part that comes with raysim, or a user's own class, with the keys that it is given; and what a law
is: a function whose docstring says what must hold. It raises Broken where that does not hold."""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from raysim.laws.small_scenarios import Raw, merged, trials
from raysim.parts.errors import ScenarioError, nearest
from raysim.parts.own import WrongClass, import_class, require_part
from raysim.parts.own_function import find
from raysim.parts.part import Part, as_tuples, names_of
from raysim.scenario import Scenario, parse_scenario
from raysim.scenario.explain import explain
from raysim.scenario.kinds import Kind, find_parts, kind_of, kinds
from raysim.scenario.load import assign, override_all, read
from raysim.scenario.words import placed, required

Law: TypeAlias = Callable[[Any], None]
Groups: TypeAlias = Sequence[Sequence[Law]]


class Broken(Exception):
    """A law does not hold. The text says where, what must hold, and what was got."""


class NotTried(Exception):
    """A law cannot be tried on this part. The text says why."""


class Subject:
    """A part to be tested, and a scenario to try it in.

    name: a part's name, module:Class, or metrics/module:function and the like. settings: its keys, such as "alpha=0.1".
    scenario: a file to try it in; by default a small scenario is made. Raises WrongClass if there is no such part, and
    ScenarioError for wrong settings.
    """

    def __init__(self, name: str, settings: Sequence[str] = (), scenario: Path | None = None) -> None:
        self.name = name.rpartition("/")[2]
        if own := _own_function(name):
            self.kind, self.part, self.block = own
        else:
            self.kind, self.part = own_part(self.name) if ":" in name else shipped_part(name)
            self.block = {"name": self.name, **required(self.part)}
        if wrong := override_all(self.block, settings):
            raise ScenarioError(name, wrong)
        self.file = scenario

    @cached_property
    def made(self) -> Any:
        """The part itself, of whatever kind. Raises ScenarioError if its keys are wrong."""
        try:
            return self.part.model_validate(as_tuples(self.block))
        except ValidationError as error:
            raise ScenarioError(self.name, explain(error, self.part, self.block)) from None

    @cached_property
    def raw(self) -> Raw:
        """The scenario in which the part is tried: the first that is right, or the very first if none is."""
        choices = [*trials(self.kind, self.part, self.block)] if self.file is None else [*self._in_file(self.file)]
        return next(filter(_is_right, choices), choices[0])

    def _in_file(self, file: Path) -> Iterator[Raw]:
        """Yields the scenario of a file with the part in its place; then with an owner of its key that is sure to have
        it, because the one that a right file names may not."""
        given, block = read(file), placed(self.kind, self.block)
        value: Any = block
        for key in self.kind.key.split("."):
            value = value[key] if isinstance(value, dict) else None
        raw = copy.deepcopy(given)
        if value is not None and assign(raw, self.kind.key, value, self.name) is None:
            yield raw
        if value is None or _is_right(given):
            yield merged(given, block)

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario in which the part is tried. Raises ScenarioError if it is wrong."""
        return parse_scenario(self.raw, "the trial" if self.file is None else str(self.file))

    @property
    def clients(self) -> int:
        """The number of clients, or peers, of that scenario."""
        return self.scenario.data.clients


def _is_right(raw: Raw) -> bool:
    try:
        parse_scenario(raw)
    except ScenarioError:
        return False
    return True


FUNCTIONS: dict[str, Raw] = {  # by kind, the block of the part that calls a function, or builds a class that is no part
    "metrics": {"name": "function", "function": ...},
    "loss": {"name": "function", "function": ...},
    "model": {"name": "module", "module": ...},
}


def _own_function(name: str) -> tuple[Kind, type[Part], Raw] | None:
    """Returns the kind, the part and the block of metrics/module:function, and the like; None for other names."""
    word, _, path = name.partition("/")
    if ":" not in path or word not in FUNCTIONS:
        return None
    found: object = find(path)
    if isinstance(found, type) and issubclass(found, Part):
        return None
    block = {key: path if value is ... else value for key, value in FUNCTIONS[word].items()}
    ((kind, part),) = [(kind, part) for kind, part in find_parts(block["name"]) if kind.word == word]
    return kind, part, block


def own_part(path: str) -> tuple[Kind, type[Part]]:
    """Imports the class at module:Class, and returns it with its kind. Raises WrongClass if it can be no part."""
    found = import_class(path)
    kind = kind_of(found) if isinstance(found, type) and issubclass(found, Part) else None
    if kind is None:
        text = "must name a subclass of a base that raysim has for parts, such as raysim.algorithms.Central"
        others = ", ".join(f"{word}/{path}" for word in FUNCTIONS)
        raise WrongClass(f"{text}, got {path!r}, which is {found!r}; `raysim test` also takes {others}")
    require_part(found, kind.choice.bases, path)
    return kind, kind.choice.find(path) or found


def shipped_part(name: str) -> tuple[Kind, type[Part]]:
    """Returns the part of this name, with its kind. Raises WrongClass unless there is exactly one.

    If several kinds have a part of this name, the kind stands before it, as in topology/random.
    """
    key, _, last = name.rpartition("/")
    found = [(kind, part) for kind, part in find_parts(last) if key in ("", kind.key, kind.word)]
    if len(found) != 1:
        several = " or ".join(f"{kind.word}/{last}" for kind, _ in found) or "one that `raysim list` shows"
        known = [name for kind in kinds() for part in kind.parts for name in names_of(part)]
        of_file = f"; write {last[:-3]}:Class, with the name of the class in that file"
        hint = "" if found else of_file if last.endswith(".py") else nearest(last, known)
        raise WrongClass(f"must be module:Class, or the name of a part, {several}, got {name!r}{hint}")
    return found[0]
