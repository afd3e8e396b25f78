"""Scenario files that were changed at random, and what may be said of them."""

import copy
import io
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from conftest import SHIPPED, digits, quadratic
from peers_runs import centers, peers
from ruamel.yaml import YAML
from typer.testing import CliRunner

from raysim.cli.app import app

Rng = np.random.Generator
Place = tuple[Any, Any]  # a dictionary or a list, and a key in it

EXTREMES: list[Any] = [
    *(None, True, [], {}, "", " ", "x" * 300, "x" * 100_000, "é\u202e\x1b[31m", "no:such", "os:system", "../../etc"),
    *(0, -1, 2, 7, 100, 10**6, 2**31, 2**63, 10**30, 0.0, -0.5, 0.5, 1.0, 1e-300, 1e300, -1e300),
    *(
        math.inf,
        -math.inf,
        math.nan,
        [0],
        [1, [2, [3]]],
        ["x"] * 1000,
        list(range(5000)),
        {"name": "x"},
        {"x": {"y": 1}},
    ),
]
TEXTS = [
    *("[", "]", "{", "}", ":", ": ", "- ", "&a ", "*a", "<<: *a", "!!python/object:os.system ", "!!binary ", "!!set "),
    *("|", ">", "'", '"', "#", "%YAML 1.1\n", "---\n", "...\n", "\t", "\n", "? ", "@", "`", "\x00", "\ud800", "\ufeff"),
    *(
        "1e400",
        "0x" + "f" * 200,
        "9" * 5000,
        ".nan",
        "-.inf",
        "2001-01-01",
        "1:2:3",
        "[" * 200,
        "{a: " * 200,
        "- " * 200,
    ),
    *(
        "x0: &x0 [1]\n" + "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12)),
        "x" * 10_000,
    ),
]
# What a message says: where, what must hold, what was got; and never in the words of the libraries beneath.
TELLS = re.compile(r"must|unknown key|cannot|can only|needs|goes with|leave|is for|has no|makes|go with|is to be|are ")
FOREIGN = re.compile(r"Traceback|pydantic|Input should|type=|object at 0x|Error\(|Exception")


def sources() -> list[str]:
    """The shipped scenario files, and those that tests are made of."""
    made = [digits(), peers(), centers([[0.0], [4.0], [8.0]], 3), quadratic([[0.0], [2.0]], "fedavg", {}, 3)]
    made[3]["world"] = {"dispatch": {"picks": [[0], [1], [0]]}, "delay": {"name": "scripted", "delays": [[0, 0], [1]]}}
    return [path.read_text(encoding="utf-8") for path in SHIPPED] + [_dumped(raw) for raw in made]


def _dumped(raw: Any) -> str:
    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(raw, stream)
    return stream.getvalue()


def mutated(text: str, rng: Rng) -> str:
    """A file with one change or a few, of what it says or of how it is written."""
    if rng.random() < 0.35:
        for _ in range(rng.geometric(0.6)):
            text = _written_otherwise(text, rng)
        return text
    raw = YAML(typ="safe", pure=True).load(text)
    for _ in range(rng.geometric(0.6)):
        places = list(_places(raw))
        if places:
            CHANGES[rng.integers(len(CHANGES))](places, rng)
    return _dumped(raw)


def _places(value: Any) -> Iterator[Place]:
    """All keys and indices of a value."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _any(options: list[Any], rng: Rng) -> Any:
    return options[rng.integers(len(options))]


def _delete(places: list[Place], rng: Rng) -> None:
    block, key = _any(places, rng)
    del block[key]


def _set(places: list[Place], rng: Rng) -> None:
    block, key = _any(places, rng)
    block[key] = copy.deepcopy(_any(EXTREMES, rng))


def _swap(places: list[Place], rng: Rng) -> None:
    """Gives a key the value of another key, which is then shared: an alias."""
    (block, key), (other, source) = _any(places, rng), _any(places, rng)
    value = other[source]
    block[key] = value if not isinstance(value, dict | list) or not _holds(value, block) else copy.deepcopy(value)


def _holds(value: Any, wanted: Any) -> bool:
    return value is wanted or any(_holds(block[key], wanted) for block, key in _places(value))


def _rename(places: list[Place], rng: Rng) -> None:
    block, key = _any(places, rng)
    if isinstance(block, dict):
        name = _any(
            [f"{key}s", str(key)[1:], str(key).upper(), "name", "é", "x" * 300, 3, None, True, "a.b", "\n"], rng
        )
        block[name] = block.pop(key)


def _scale(places: list[Place], rng: Rng) -> None:
    """Makes a number larger or smaller, or another kind of number."""
    numbers = [(block, key) for block, key in places if type(block[key]) in (int, float)]
    if numbers:
        block, key = _any(numbers, rng)
        old = block[key]
        block[key] = _any(
            [-old, old * 10, old * 1000, old / 3, float(old), str(old), [old], old + 1, old - 1, not old], rng
        )


def _wrap(places: list[Place], rng: Rng) -> None:
    block, key = _any(places, rng)
    for _ in range(_any([1, 1, 2, 30, 60], rng)):
        block[key] = _any([[block[key]], {"name": block[key]}], rng)


def _add(places: list[Place], rng: Rng) -> None:
    """Gives a block a key of another block."""
    (block, _), (other, key) = _any(places, rng), _any(places, rng)
    if isinstance(block, dict) and isinstance(other, dict) and not isinstance(other[key], dict | list):
        block[key] = other[key]


CHANGES: list[Callable[[list[Place], Rng], None]] = [_delete, _set, _set, _swap, _rename, _scale, _scale, _wrap, _add]


def _written_otherwise(text: str, rng: Rng) -> str:
    lines = text.splitlines(keepends=True) or [""]
    line = int(rng.integers(len(lines)))
    at = int(rng.integers(len(text) + 1))
    match rng.integers(7):
        case 0:
            return text[:at] + str(_any(TEXTS, rng)) + text[at:]
        case 1:
            return text[:at] + text[at + int(rng.integers(1, 30)) :]
        case 2:
            return "".join([*lines[:line], *lines[line : line + 2], *lines[line:]])
        case 3:
            return "".join([*lines[:line], *lines[line + 1 :]])
        case 4:
            return "".join([*lines[:line], " " * int(rng.integers(1, 5)), *lines[line:]])
        case 5:
            return text[:at]
    values = list(re.finditer(r"(?<=: )[^\s{}\[\],][^\n{}\[\],]*", text))
    if not values:
        return text
    value = _any(values, rng)
    return text[: value.start()] + str(_any(TEXTS, rng)) + text[value.end() :]


def said(path: Path) -> tuple[str, str]:
    """How `raysim check` took a file: right, or refused; and all that it said."""
    answer = CliRunner().invoke(app, ["check", str(path)], catch_exceptions=False)
    return {0: "right", 2: "refused"}.get(answer.exit_code, f"exit code {answer.exit_code}"), answer.output


def fault(path: Path, outcome: str, output: str) -> str | None:
    """What is wrong with such an answer; None if nothing is."""
    if outcome == "right":
        return None if output.startswith(f"{path}: right (") else "says nothing"
    if outcome != "refused" or not output:
        return outcome
    for line in output.splitlines():
        if not line.startswith(f"{path}: "):
            return "a line that names no file"
        if len(line) > len(str(path)) + 2300:
            return "a line without end"
        if FOREIGN.search(line):
            return "the words of a library"
        if not TELLS.search(line) and "more problems" not in line:
            return "a line that does not say what must hold"
    return None
