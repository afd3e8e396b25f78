"""From a scenario file to a scenario, or to all that is wrong with it."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError, create_model
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from raysim.algorithms import Central
from raysim.errors import Problem, ScenarioError
from raysim.explain import explain
from raysim.part import Named
from raysim.scenario import Scenario


def load_scenario(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario of a YAML file. overrides: such as "algorithm.buffer=20", applied before it is checked.

    Raises ScenarioError with every problem at once.
    """
    source = str(path)
    try:
        raw = _parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(source, [Problem("", f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        raise ScenarioError(source, [Problem("", f"must be YAML in UTF-8: {error}")]) from error
    if not isinstance(raw, dict):
        raise ScenarioError(source, [Problem("", f"must be a block of keys such as data and model, got {raw!r}")])
    problems = [problem for override in overrides if (problem := _override(raw, override))]
    if problems:
        raise ScenarioError(source, problems)
    return parse_scenario(raw, source)


def parse_scenario(raw: dict[str, Any], source: str = "scenario") -> Scenario:
    """The scenario of plain data, as a YAML file holds it. Raises ScenarioError with every problem at once."""
    try:
        schema = _schema(raw)
        scenario = schema.model_validate(_tuples(raw))
    except ValidationError as error:
        raise ScenarioError(source, explain(error, schema, raw)) from None
    except RecursionError:
        raise ScenarioError(source, [Problem("", "must not hold an alias of a block within that block")]) from None
    except ImportError as error:
        raise ScenarioError(source, [Problem("algorithm.name", str(error))]) from error
    if schema is not Scenario:
        scenario = Scenario.model_construct(**{key: getattr(scenario, key) for key in Scenario.model_fields})
    if problems := scenario.problems():
        raise ScenarioError(source, problems)
    return scenario


def _tuples(value: Any) -> Any:
    """Lists as tuples: the fields of frozen parts are tuples, and strict."""
    if isinstance(value, dict):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list) else value


def _parse(text: str) -> Any:
    """What YAML 1.2 text holds. ValueError, in a line, where it is none."""
    try:
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark, what = error.problem_mark, ", ".join(part for part in (error.context, error.problem) if part)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(where + what) from error
    except (YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error


def _override(raw: dict[str, Any], override: str) -> Problem | None:
    """Sets one key in place, making the blocks on the way to it."""
    path, equals, text = override.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        return Problem("--set", f"must be key.path=value, got {override!r}")
    try:
        value = _parse(text)
    except ValueError as error:
        return Problem("--set", f"{path.strip()} must be set to YAML, got {text!r}: {error}")
    block: Any = raw
    for depth, key in enumerate(keys[:-1], start=1):
        inner = block.setdefault(key, {})
        if isinstance(inner, str):  # `delay: none` is short for `delay: {name: none}`
            inner = block[key] = {"name": inner}
        if not isinstance(inner, dict):
            return Problem("--set", f"{'.'.join(keys[:depth])} must be a block to set {path.strip()} in, got {inner!r}")
        block = inner
    block[keys[-1]] = value
    return None


def _schema(raw: dict[str, Any]) -> type[Scenario]:
    """Scenario, or, where `algorithm.name` is module:Class, one that takes that class for its algorithm."""
    block = raw.get("algorithm")
    name = block.get("name") if isinstance(block, dict) else block
    if not isinstance(name, str) or ":" not in name:
        return Scenario
    own: Any = Annotated[_import(name), Named]
    return create_model("Scenario", __base__=Scenario, algorithm=(own, ...))


def _import(name: str) -> type[Central]:
    """The user's own class. ImportError, with what must hold, where there is none that can be an algorithm."""
    module, _, attribute = name.partition(":")
    try:
        algorithm = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a module can raise anything while it is imported
        cause = f"{type(error).__name__}: {error}"
        text = f"must be module:Class, with the module here or on PYTHONPATH, got {name!r}, whose import raises {cause}"
        raise ImportError(text) from error
    if not (isinstance(algorithm, type) and issubclass(algorithm, Central)):
        raise ImportError(f"must name a subclass of raysim.algorithms.Central, got {name!r}, which is {algorithm!r}")
    if lacking := sorted(algorithm.__abstractmethods__):
        raise ImportError(f"must name a class that defines {', '.join(lacking)}, got {name!r}, which does not")
    if algorithm.model_fields["name"].annotation is not str:  # a Literal could not be module:Class
        raise ImportError(f"must name a class whose field is `name: str`, got {name!r}, where it is of another type")
    return algorithm
