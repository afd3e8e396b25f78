"""Whatever a scenario file holds, it is right, or refused in a message that says where and what must hold."""

import copy
import math
import re
from collections.abc import Iterator
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_origin

import numpy as np
import pytest
from conftest import digits
from mutations import fault, mutated, said, sources
from pydantic import ValidationError, create_model

from raysim import Scenario, ScenarioError, parse_scenario
from raysim.parts.part import Part, names_of, parts_of

SOURCES = sources()
VALUES: list[Any] = [None, [], "x" * 300, -1, 0, math.inf, {}]

Keys = tuple[str | int, ...]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))])
def test_files_changed_at_random_are_right_or_refused_in_words_of_their_own(tmp_path: Path, seed: int) -> None:
    """`python benchmarks/fuzz_scenarios.py --count 5000` tries more of them, and measures time and memory."""
    for number in range(30):
        rng = np.random.default_rng([1000 + seed, number])
        text = mutated(SOURCES[rng.integers(len(SOURCES))], rng)
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        outcome, output = said(path)
        assert fault(path, outcome, output) is None, f"{text[:3000]}\n{outcome}\n{output}"


def _fields(
    part: type[Part], way: Keys, block: Any, seen: set[tuple[type, str]]
) -> Iterator[tuple[type[Part], Keys, Any]]:
    """Every key of a part and of the parts in it, inherited ones once: the part, the keys that lead there, and a
    scenario that gets there.

    block: a function that puts a block in the place of the part, and returns the scenario.
    """
    for name, field in part.model_fields.items():
        owner = next(base for base in part.__mro__ if name in get_annotations(base))
        if (owner, name) in seen or (name == "name" and names_of(part)):
            continue
        seen.add((owner, name))
        yield part, (*way, name), block
        annotation = field.rebuild_annotation()
        origin = get_origin(field.annotation)
        inner = {dict: ("x",), tuple: (0,), list: (0,)}.get(origin, ()) if origin else ()
        for option in parts_of(annotation):
            named = {"name": names_of(option)[0]} if names_of(option) else {}

            def place(content: Any, name: str = name, inner: Any = inner, named: Any = named) -> Any:
                value = {**named, **content}
                return block({name: {"x": value} if inner == ("x",) else [value] if inner else value})

            yield from _fields(option, (*way, name, *inner), place, seen)


def _scenario(content: Any) -> Any:
    return {**copy.deepcopy(digits()), **content}


EVERY_KEY = list(_fields(Scenario, (), _scenario, set()))


@pytest.mark.parametrize(("part", "way", "block"), EVERY_KEY, ids=[".".join(map(str, way)) for _, way, _ in EVERY_KEY])
def test_a_wrong_value_at_any_key_is_told_at_that_key(part: type[Part], way: Keys, block: Any) -> None:
    path = ".".join(map(str, way))
    field = part.model_fields[str(way[-1])]
    alone: Any = create_model("Alone", __base__=Part, value=(field.rebuild_annotation(), ...))
    for value in VALUES:
        if way == ("data", "clients") and isinstance(value, str):
            continue  # it may be a column, which is looked for once all other keys are right
        if value == {} and isinstance(field.default, Part):
            continue  # a block without a name may be of the default
        try:
            parse_scenario(block({way[-1]: value}))
            told = []
        except ScenarioError as error:
            told = [problem.path for problem in error.problems]
            assert max(map(len, str(error).splitlines())) < 2300
            assert not re.search("Value error,|got None", str(error))  # words of pydantic and of Python
        try:
            alone.model_validate({"value": () if value == [] else value})
        except ValidationError:
            assert any(place == path or place.startswith(f"{path}.") for place in told), (value, told)
