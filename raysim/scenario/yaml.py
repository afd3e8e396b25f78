"""Reads scenario files as plain data, and sets keys in such data."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from raysim.errors import Problem, ScenarioError


def read(path: str | Path) -> dict[str, Any]:
    """Returns the content of a YAML file. Raises ScenarioError if it cannot be read or is not a block of keys."""
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
    """Returns what a text in YAML 1.2 holds. Raises ValueError, with a message of one line, if it is not YAML."""
    try:
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark, what = error.problem_mark, ", ".join(part for part in (error.context, error.problem) if part)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(where + what) from error
    except (YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error


def override(raw: dict[str, Any], text: str) -> Problem | None:
    """Sets a key of `raw` in place, as a text such as "algorithm.buffer=20" says. Returns a problem, or None."""
    split = split_override(text)
    if isinstance(split, Problem):
        return split
    path, value = split
    try:
        return assign(raw, path, parse(value), "--set")
    except ValueError as error:
        return Problem("--set", f"{path} must be set to YAML, got {value!r}: {error}")


def split_override(text: str, option: str = "--set") -> tuple[str, str] | Problem:
    """Splits "key.path=value" into path and value, or returns a problem. option: the path of that problem."""
    path, equals, value = text.partition("=")
    if not equals or not all(path.strip().split(".")):
        return Problem(option, f"must be key.path=value, got {text!r}")
    return path.strip(), value


def assign(raw: dict[str, Any], path: str, value: Any, where: str) -> Problem | None:
    """Sets the key at a dotted path of `raw` in place, and makes blocks on the way if they are missing.

    Returns a problem if something on the way is not a block, or None. where: the path of that problem.
    """
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
