"""Scenario files as plain data: reading them, and setting keys in them."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from raysim.errors import Problem, ScenarioError


def read(path: str | Path) -> dict[str, Any]:
    """The blocks of a YAML file. ScenarioError where there is no such file, or something else in it."""
    source = str(path)
    try:
        raw = parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(source, [Problem("", f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        raise ScenarioError(source, [Problem("", f"must be YAML in UTF-8: {error}")]) from error
    if not isinstance(raw, dict):
        raise ScenarioError(source, [Problem("", f"must be a block of keys such as data and model, got {raw!r}")])
    return raw


def parse(text: str) -> Any:
    """What YAML 1.2 text holds. ValueError, in a line, where it is none."""
    try:
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark, what = error.problem_mark, ", ".join(part for part in (error.context, error.problem) if part)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(where + what) from error
    except (YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error


def override(raw: dict[str, Any], text: str) -> Problem | None:
    """Sets the key of text such as "algorithm.buffer=20", in place."""
    split = split_override(text)
    if isinstance(split, Problem):
        return split
    path, value = split
    try:
        return assign(raw, path, parse(value), "--set")
    except ValueError as error:
        return Problem("--set", f"{path} must be set to YAML, got {value!r}: {error}")


def split_override(text: str, option: str = "--set") -> tuple[str, str] | Problem:
    """The key's path and the text of its value. option: for the message."""
    path, equals, value = text.partition("=")
    if not equals or not all(path.strip().split(".")):
        return Problem(option, f"must be key.path=value, got {text!r}")
    return path.strip(), value


def assign(raw: dict[str, Any], path: str, value: Any, where: str) -> Problem | None:
    """Sets the key at a dotted path, in place, making the blocks on the way to it. where: for the message."""
    *way, last = path.split(".")
    block: Any = raw
    for depth, key in enumerate(way, start=1):
        inner = block.setdefault(key, {})
        if isinstance(inner, str):  # `delay: none` is short for `delay: {name: none}`
            inner = block[key] = {"name": inner}
        if not isinstance(inner, dict):
            return Problem(where, f"{'.'.join(way[:depth])} must be a block to set {path} in, got {inner!r}")
        block = inner
    block[last] = value
    return None
