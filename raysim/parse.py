"""From a scenario file to a scenario, or to all that is wrong with it."""

import importlib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import Field, ValidationError, create_model
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML, YAMLError

from raysim.algorithms import Central
from raysim.errors import Problem, ScenarioError
from raysim.part import Part
from raysim.scenario import Scenario


def load_scenario(path: str | Path, overrides: tuple[str, ...] | list[str] = ()) -> Scenario:
    """The scenario of a YAML file. overrides: such as "algorithm.buffer=20", applied before it is checked.

    Raises ScenarioError with every problem at once.
    """
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(source, [Problem("", f"cannot be read: {error}")]) from error
    raw = _parse(text, source)
    if not isinstance(raw, dict):
        raise ScenarioError(source, [Problem("", f"must be a mapping of keys such as data and model, got {raw!r}")])
    problems = [problem for override in overrides if (problem := _override(raw, override, source))]
    if problems:
        raise ScenarioError(source, problems)
    return parse_scenario(raw, source)


def parse_scenario(raw: dict[str, Any], source: str = "scenario") -> Scenario:
    """The scenario of plain data, as a YAML file holds it. Raises ScenarioError with every problem at once."""
    schema = _schema(raw, source)
    try:
        scenario = schema.model_validate(_tuples(raw))
    except ValidationError as error:
        raise ScenarioError(source, [_problem(schema, raw, details) for details in error.errors()]) from None
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


def _parse(text: str, source: str) -> Any:
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ScenarioError(source, [Problem("", f"is not valid YAML: {error}")]) from error


def _override(raw: dict[str, Any], override: str, source: str) -> Problem | None:
    """Sets one key in place, making the blocks on the way to it."""
    path, equals, value = override.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        return Problem("--set", f"must be key.path=value, got {override!r}")
    block: Any = raw
    for depth, key in enumerate(keys[:-1]):
        inner = block.setdefault(key, {})
        if isinstance(inner, str):  # `delay: none` is short for `delay: {name: none}`
            inner = block[key] = {"name": inner}
        if not isinstance(inner, dict):
            return Problem("--set", f"{'.'.join(keys[: depth + 1])} must be a block to set {path} in, it is {inner!r}")
        block = inner
    block[keys[-1]] = _parse(value, f"{source}: --set {override}")
    return None


def _schema(raw: dict[str, Any], source: str) -> type[Scenario]:
    """Scenario, or, where `algorithm.name` is module:Class, one that takes that class for its algorithm."""
    block = raw.get("algorithm")
    name = block.get("name") if isinstance(block, dict) else block
    if not isinstance(name, str) or ":" not in name:
        return Scenario
    module, _, attribute = name.partition(":")
    try:
        algorithm = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        text = f"must be module:Class that can be imported here, got {name!r}: {error}"
        raise ScenarioError(source, [Problem("algorithm.name", text)]) from error
    if not (isinstance(algorithm, type) and issubclass(algorithm, Central)):
        text = f"must name a subclass of raysim.algorithms.Central, got {name!r}"
        raise ScenarioError(source, [Problem("algorithm.name", text)])
    if isinstance(block, str):
        raw["algorithm"] = {"name": name}
    return create_model("Scenario", __base__=Scenario, algorithm=(Annotated[algorithm, Field()], ...))


# --- what pydantic found, in words ------------------------------------------------------------------------------------


def _problem(schema: type[Part], raw: Any, details: ErrorDetails) -> Problem:
    keys, parent, value = _locate(schema, raw, details["loc"])
    path = ".".join(str(key) for key in keys)
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        known = list(parent.model_fields) if parent else []
        return Problem(path, f"unknown key{_did_you_mean(str(keys[-1]), known)}; known here: {', '.join(known)}")
    if kind == "missing":
        return Problem(path, "must be given, got nothing")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        options = [tag.strip(" '") for tag in str(context.get("expected_tags", "")).split(",") if tag.strip()]
        given = value.get("name") if isinstance(value, dict) else value
        if kind == "union_tag_not_found":
            return Problem(path, f"must have a name, got {value!r}; `raysim list` shows all names")
        text = f"must be one of {', '.join(options)}, got {given!r}{_did_you_mean(str(given), options)}"
        return Problem(f"{path}.name", text)
    text = details["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return Problem(path, text)
    text = text.removeprefix("Input should be ")
    return Problem(path, f"must be {text}, got {value!r}")


def _did_you_mean(word: str, options: list[str]) -> str:
    close = get_close_matches(word, options, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _locate(schema: type[Part], raw: Any, loc: tuple[int | str, ...]) -> tuple[list[int | str], type[Part] | None, Any]:
    """The path in the file of pydantic's location, which also names the alternatives of unions that it went into; the
    part that the last key belongs to; and the value there."""
    keys: list[int | str] = []
    part: type[Part] | None = schema  # that the value read so far is checked against
    owner = part
    options: list[type[Part]] = []
    value = raw
    for key in loc:
        chosen = [option for option in options if _tagged(option, key)]
        if chosen and part is None:
            part = chosen[0]
            continue
        if not (isinstance(value, dict) or (isinstance(value, list) and isinstance(key, int))):
            break  # the name of an alternative of a plain union, such as a number or a list
        keys.append(key)
        owner = part
        options = _parts(part.model_fields[str(key)].annotation) if part and key in part.model_fields else []
        part = options[0] if len(options) == 1 else None
        value = value.get(key) if isinstance(value, dict) else value[key] if isinstance(key, int) else None
    return keys, owner, value


def _tagged(part: type[Part], tag: int | str) -> bool:
    return "name" in part.model_fields and tag in get_args(part.model_fields["name"].annotation)


def _parts(annotation: Any) -> list[type[Part]]:
    """All parts that an annotation allows."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return [annotation]
    return [part for argument in get_args(annotation) for part in _parts(argument)]
