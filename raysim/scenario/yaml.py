"""Reads scenario files as plain data, and sets keys in such data."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from raysim.parts.errors import Problem, ScenarioError, quoted
from results.yaml import parse

LENGTH = 16_000_000  # most letters of a scenario file; reading so many takes about a minute


def read(path: str | Path) -> dict[str, Any]:
    """Returns the content of a YAML file. Raises ScenarioError if it cannot be read or is not a block of keys."""
    source = str(path)
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(LENGTH + 1)
        if len(text) > LENGTH:
            raise ValueError(f"at most {LENGTH:,} letters, got more; it may be another kind of file")
        raw = parse(text)
    except OSError as error:
        raise ScenarioError(source, [Problem("", f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        raise ScenarioError(source, [Problem("", f"must be YAML in UTF-8: {error}")]) from error
    if not isinstance(raw, dict):
        raise ScenarioError(source, [Problem("", f"must be a block of keys such as data and model, got {quoted(raw)}")])
    return raw


def override_all(raw: dict[str, Any], overrides: Sequence[str]) -> list[Problem]:
    """Sets keys of `raw` in place, as texts such as "algorithm.buffer=20" say. Returns problems."""
    settings, problems = settings_of(overrides, "overrides", "--set")
    return problems + [problem for path, value in settings if (problem := assign(raw, path, value, "--set"))]


def settings_of(
    texts: Sequence[str], argument: str, option: str, read: Callable[[str], Any] = parse
) -> tuple[list[tuple[str, Any]], list[Problem]]:
    """Returns the keys and values of texts such as "algorithm.buffer=20", and problems.

    argument: where the texts are from, in Python. option: where they are from on the command line, which is the path of
    problems. read: makes a value of a text. It raises ValueError for what is no YAML.
    """
    # A single text would be taken for a list of letters.
    if not isinstance(texts, Sequence) or isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        must = 'must be a list of texts such as ["run.rounds=100"]'
        return [], [Problem(argument, f"{must}, got {quoted(texts)}; write it so")]
    found: list[tuple[str, Any]] = []
    problems = []
    for text in texts:
        path, equals, value = text.partition("=")
        path = path.strip()
        if not equals or not all(path.split(".")):
            problems.append(Problem(option, f"must be key.path=value, got {quoted(text)}"))
            continue
        try:
            found.append((path, read(value)))
        except ValueError as error:
            problems.append(Problem(option, f"{path} must be set to YAML, got {quoted(value)}: {error}"))
    return found, problems


def assign(raw: dict[str, Any], path: str, value: Any, where: str) -> Problem | None:
    """Sets the key at a dotted path of `raw` in place, and makes blocks on the way if they are missing or null.

    Returns a problem if something on the way is not a block, or None. where: the path of that problem.
    """
    *way, last = path.split(".")
    block: Any = raw
    for depth, key in enumerate(way, start=1):
        inner = block.get(key)
        if inner is None:
            inner = block[key] = {}
        elif isinstance(inner, str):  # `delay: none` is short for `delay: {name: none}`
            inner = block[key] = {"name": inner}
        if not isinstance(inner, dict):
            return Problem(where, f"{'.'.join(way[:depth])} must be a block to set {path} in, got {quoted(inner)}")
        block = inner
    block[last] = value
    return None
