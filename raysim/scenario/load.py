"""Loads scenarios from files, and reports all that is wrong with them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError

from raysim.models import MODELS, ModelPart
from raysim.parts.errors import Problem, ScenarioError, no_faults, quoted
from raysim.parts.part import OneOf, Part
from raysim.parts.plain import as_tuples
from raysim.scenario.checks import problems_of
from raysim.scenario.explain import explain
from raysim.scenario.schema import Scenario
from raysim.scenario.yaml import assign, override_all, read
from results.yaml import parse


def load_scenario(path: str | Path, overrides: Sequence[str] = (), case: str | None = None) -> Scenario:
    """Loads and checks the scenario in a YAML file.

    overrides: keys to replace before the check, such as "algorithm.buffer=20". case: the name of a case of the file's
    sweep; the sweep's grid and search are then left out. Raises ScenarioError with all problems.
    """
    raw, source = read(path), str(path)
    problems = _choose(raw, case)
    problems += override_all(raw, overrides)
    if problems:
        raise ScenarioError(source, problems)
    name_after(raw, case)
    try:
        return parse_scenario(raw, source)
    except ScenarioError as error:
        raise ScenarioError(source, [*error.problems, *_several(overrides, error.problems)]) from None


def _several(overrides: Sequence[str], problems: list[Problem]) -> Iterator[Problem]:
    """Yields a problem for each wrong key that is given several values, which only a sweep allows."""
    for text in overrides:
        key, _, value = text.partition("=")
        if "," in value and any(f"{problem.path}.".startswith(f"{key.strip()}.") for problem in problems):
            with suppress(ValueError):
                if len(values := parse(f"[{value}]")) > 1:
                    yield Problem("--set", f"{text} has {len(values)} values; `raysim sweep` runs one after the other")


def _choose(raw: dict[str, Any], case: str | None) -> list[Problem]:
    """Takes the sweep out of a file's plain data, and sets the keys of one of its cases. Returns problems."""
    block = raw.pop("sweep", None)
    found = block.get("cases") if isinstance(block, dict) else None
    cases = found if isinstance(found, dict) else {}
    if case is None:
        some = f", or one of its cases with --case, such as --case {next(iter(cases))}" if cases else ""
        text = f"makes several runs of this file; run it with `raysim sweep`{some}"
        return [Problem("sweep", text)] if block is not None else []
    if not cases:
        return [Problem("--case", f"must not be given, because the file has no cases, got {case}; leave it out")]
    if case not in cases or not isinstance(cases[case], dict):
        return [Problem("--case", f"must be one of {', '.join(cases)}, got {case}")]
    return set_case(raw, cases[case])


def set_case(raw: dict[str, Any], settings: dict[str, Any]) -> list[Problem]:
    """Sets the keys of a case in a file's plain data, in place. Returns problems."""
    problems = [_dropping(raw, *item) or assign(raw, *deepcopy(item), "sweep") for item in settings.items()]
    return [problem for problem in problems if problem]


def _dropping(raw: dict[str, Any], path: str, value: Any) -> Problem | None:
    """Returns a problem if a case replaces `local`, `run` or `resources`, and so drops keys that the file sets there,
    such as its rate: they would silently have their defaults.

    Other blocks may be replaced, because their keys often exclude each other, such as those of a part.
    """
    before = raw.get(path)
    if path not in ("local", "run", "resources") or not isinstance(value, dict) or not isinstance(before, dict):
        return None
    if not (dropped := sorted(before.keys() - value.keys())):
        return None
    keys = ", ".join(f"{path}.{key}" for key in value) or f"{path}.<key>"
    text = f"takes the place of the whole block, which also sets {', '.join(dropped)}; set only {keys}, or repeat them"
    return Problem(f"sweep.cases: {path}", f"{text}, got {quoted(value)}")


def name_after(raw: dict[str, Any], case: str | None) -> None:
    """Appends the name of a case to the name in a scenario's plain data, in place."""
    if case and isinstance(raw.get("name"), str):
        raw["name"] += f"-{case}"


def parse_scenario(raw: dict[str, Any], source: str = "scenario") -> Scenario:
    """Checks plain data, as a YAML file holds them, and returns the scenario.

    source: where the data are from, for error messages. Raises ScenarioError with all problems.
    """
    return checked(read_back(raw, source), source)


def scenario_of(given: Scenario | dict[str, Any] | str | Path) -> Scenario:
    """Returns the scenario that Python code gives: itself, plain data, or the path of a file.

    Raises ScenarioError with all problems.
    """
    if isinstance(given, str | Path):
        return load_scenario(given)
    if isinstance(given, dict):
        return parse_scenario(given)
    if isinstance(given, Scenario):
        return checked(given)
    raise ScenarioError("scenario", [Problem("", f"must be a Scenario, plain data or a path, got {quoted(given)}")])


def read_back(raw: dict[str, Any], source: str) -> Scenario:
    """Returns the scenario of a run, as its run.json holds it. The files that it names may be gone by now.

    Raises ScenarioError if a key is wrong.
    """
    try:
        with no_faults(source):
            return Scenario.model_validate(as_tuples(raw))
    except ValidationError as error:
        raise ScenarioError(source, explain(error, Scenario, raw)) from None
    except RecursionError:
        raise ScenarioError(source, [Problem("", "must not hold an alias of a block within that block")]) from None


def checked(scenario: Scenario, source: str = "scenario") -> Scenario:
    """Returns a scenario whose parts fit together. Raises ScenarioError with all problems if they do not."""
    with no_faults(source):
        problems = problems_of(scenario)
    if problems:
        raise ScenarioError(source, problems)
    return scenario


class _ModelAlone(Part):
    model: Annotated[ModelPart, OneOf(MODELS, "raysim.models")]


def parse_model(raw: Any, source: str) -> ModelPart:
    """Checks the block `model` of a scenario, and returns the model. Raises ScenarioError with all problems."""
    block = {"model": raw}
    try:
        return _ModelAlone.model_validate(as_tuples(block)).model
    except ValidationError as error:
        raise ScenarioError(source, explain(error, _ModelAlone, block)) from None
