"""Loads scenarios from files, and reports all that is wrong with them."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError, create_model

from raysim.algorithms import Central, Peer
from raysim.errors import Problem, ScenarioError
from raysim.part import spell_out
from raysim.scenario.checks import problems_of
from raysim.scenario.explain import explain
from raysim.scenario.schema import Scenario
from raysim.scenario.yaml import override, read


def load_scenario(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Loads and checks the scenario in a YAML file.

    overrides: keys to replace before the check, such as "algorithm.buffer=20". Raises ScenarioError with all problems.
    """
    raw, source = read(path), str(path)
    if "sweep" in raw:
        raise ScenarioError(source, [Problem("sweep", "makes several runs of this file; run it with `raysim sweep`")])
    problems = [problem for text in overrides if (problem := override(raw, text))]
    if problems:
        raise ScenarioError(source, problems)
    return parse_scenario(raw, source)


def parse_scenario(raw: dict[str, Any], source: str = "scenario") -> Scenario:
    """Checks plain data, as a YAML file holds them, and returns the scenario.

    source: where the data are from, for error messages. Raises ScenarioError with all problems.
    """
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
    if problems := problems_of(scenario):
        raise ScenarioError(source, problems)
    return scenario


def _tuples(value: Any) -> Any:
    """Returns a value with all lists as tuples, because the fields of parts are tuples and accept no lists."""
    if isinstance(value, dict):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(_tuples(inner) for inner in value) if isinstance(value, list) else value


def _schema(raw: dict[str, Any]) -> type[Scenario]:
    """Returns the class to validate with: Scenario, or a subclass that allows a user's own algorithm, module:Class."""
    block = raw.get("algorithm")
    name = block.get("name") if isinstance(block, dict) else block
    if not isinstance(name, str) or ":" not in name:
        return Scenario
    own: Any = Annotated[_import(name), BeforeValidator(spell_out)]
    return create_model("Scenario", __base__=Scenario, algorithm=(own, ...))


def _import(name: str) -> type[Central | Peer]:
    """Imports a user's own class. Raises ImportError, which says what must hold, if it cannot be an algorithm."""
    module, _, attribute = name.partition(":")
    try:
        algorithm = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a module can raise anything while it is imported
        cause = f"{type(error).__name__}: {error}"
        text = f"must be module:Class, with the module here or on PYTHONPATH, got {name!r}, whose import raises {cause}"
        raise ImportError(text) from error
    if not (isinstance(algorithm, type) and issubclass(algorithm, Central | Peer)):
        must = "must name a subclass of raysim.algorithms.Central or Peer"
        raise ImportError(f"{must}, got {name!r}, which is {algorithm!r}")
    if lacking := sorted(algorithm.__abstractmethods__):
        raise ImportError(f"must name a class that defines {', '.join(lacking)}, got {name!r}, which does not")
    if algorithm.model_fields["name"].annotation is not str:  # a Literal could not be module:Class
        raise ImportError(f"must name a class whose field is `name: str`, got {name!r}, where it is of another type")
    return algorithm
