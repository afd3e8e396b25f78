"""What is tested: a part that comes with raysim, or a user's own class, with the keys that it is given; the small
scenarios in which it is tried, a few clients with a few handwritten digits, quadratics, or texts; and what a law is: a
function whose docstring says what must hold. It raises Broken where that does not hold."""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from pydantic import ValidationError

from raysim.algorithms import Central, Peer
from raysim.algorithms.sliced import Deep, Sliced
from raysim.data.sources.synthetic import Quadratic
from raysim.models.part import ModelPart, Vector
from raysim.parts.errors import ScenarioError, nearest
from raysim.parts.own import WrongClass, import_class, require_part
from raysim.parts.own_function import find
from raysim.parts.part import Part, as_tuples, names_of, spell_out
from raysim.scenario import Scenario, parse_scenario
from raysim.scenario.explain import explain
from raysim.scenario.kinds import Kind, find_parts, kind_of, kinds
from raysim.scenario.load import assign, override_all, read
from raysim.scenario.words import placed, required
from raysim.uplink.noise import LocalNoise
from results.keys import parse

Raw = dict[str, Any]
Law: TypeAlias = Callable[[Any], None]
Groups: TypeAlias = Sequence[Sequence[Law]]

SMALL: dict[str, Any] = parse((files("raysim.laws") / "small_scenarios.yaml").read_text(encoding="utf-8"))
SMALL["texts"]["data"]["path"] = str(files("raysim.laws") / "texts.jsonl")


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


# --- the scenarios in which it is tried -------------------------------------------------------------------------------


def trials(kind: Kind, part: type[Part], block: Raw) -> Iterator[Raw]:
    """Yields scenarios with the part, the plainest first. It is tried in the first one that is right."""
    with_part = placed(kind, block)
    base = merged(SMALL["digits"], SMALL["peers"] if for_peers(kind, part) else SMALL["server"])
    if kind.key in ("world.edge_delay", "world.links"):
        base = merged(base, SMALL["asynchronous"])
    if kind.key == "data":  # whose inputs may be large
        base = merged(base, {"local": {"lr": 0.001}})
    if kind.key.startswith("world.delay"):
        base = merged(base, SMALL["patient"])
    if getattr(part, "needs", None) == "targets":  # a metric or a loss
        base = merged(base, SMALL["regression"])
    if getattr(part, "needs", None) == "several labels":
        x = np.random.default_rng(0).standard_normal((160, 5), np.float32)
        base = merged(base, {"data": {"name": "arrays", "arrays": {"x": x, "y": (x[:, :3] > 0).astype(int)}}})
        base = merged(base, {"data": {"clients": 8, "partition": "iid", "task": "multi_label"}})
    if kind.key == "release":
        base = merged(base, SMALL["released"])
    if issubclass(part, Quadratic):
        base = merged(base, {"model": "vector", "world": {"dispatch": {"per_round": 1}}})
    if issubclass(part, Vector):
        base = merged(base, {"data": SMALL["alike"]["data"]})
    if issubclass(part, ModelPart) and "text" in part.takes and "images" not in part.takes:
        base = merged(merged(base, SMALL["texts"]), SMALL["tasks"].get(getattr(part, "task", None), {}))
    if issubclass(part, LocalNoise):  # whose size may follow from a bound
        with_part["uplink"] = [{"name": "clip_norm", "max": 1.0, "order": part.order}, *with_part["uplink"]]
    if kind.key == "data.tokenizer":  # last, because the example of a path is no file
        with_part = merged(with_part, SMALL["texts"])
    if issubclass(part, Deep) or issubclass(kind.owner, Deep):
        base = merged(base, SMALL["deep"])
    if issubclass(part, Sliced):
        base = merged(base, SMALL["sliced"])
    if kind.key != "algorithm":
        yield merged(base, with_part)
        return
    base = merged(base, SMALL["asynchronous"]) if getattr(part, "pairs", False) else base
    base = base if for_peers(kind, part) else merged(base, SMALL["own_models"])  # so that all methods are called
    for needs in sorted(product((False, True), repeat=len(SMALL["needs"])), key=sum):
        raw = base
        for need, wanted in zip(SMALL["needs"], needs, strict=True):
            raw = merged(raw, need) if wanted else raw
        yield merged(raw, with_part)


def quadratics(part: type[Part], block: Raw) -> Raw:
    """Returns a scenario in which an algorithm minimises quadratics that all have the same optimum."""
    world: Raw = {"topology": "ring"} if issubclass(part, Peer) else {"world": {"dispatch": {"per_round": 4}}}
    alike = merged(SMALL["alike"], SMALL["asynchronous"]) if getattr(part, "pairs", False) else SMALL["alike"]
    return merged(merged(alike, world), {"algorithm": block})


def for_peers(kind: Kind, part: type[Part]) -> bool:
    """Whether a part can only be tried without a server."""
    of_peers = kind.key.startswith(("topology", "world.edge_delay", "world.links"))
    return of_peers or (issubclass(part, Peer) and not issubclass(part, Central))


def merged(base: Raw, changes: Raw) -> Raw:
    """Returns a scenario with other keys. A part of another name replaces the one that was there."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        there = spell_out(result.get(key))
        alike = isinstance(there, dict) and isinstance(value, dict) and value.get("name") in (None, there.get("name"))
        result[key] = merged(there, value) if alike else copy.deepcopy(value)
    return result
