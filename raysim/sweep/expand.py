"""Makes the scenarios of all runs from a scenario file with a sweep."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raysim.parts.errors import Problem, ScenarioError, quoted
from raysim.scenario import Scenario
from raysim.scenario.explain import explain
from raysim.scenario.load import assign, name_after, parse_scenario, read, set_case, settings_of
from raysim.sweep.settings import Direction, Search, Sweep, direction_of
from results.keys import parse


@dataclass(frozen=True)
class Plan:
    """A sweep, as plain data. `scenarios` makes its runs; in a search, each trial sets further keys of them."""

    source: str  # name of the file, for error messages
    raw: dict[str, Any]  # the scenario file without its sweep
    sweep: Sweep
    last: list[tuple[str, Any]] = field(default_factory=list)  # keys that are set after cases and grid
    direction: Direction | None = None  # of the search, if there is one

    @property
    def name(self) -> str:
        """Name of the scenario, without that of a case. The folder of the runs has it too."""
        return str(dict(self.last).get("name", self.raw.get("name")))

    @property
    def search(self) -> Search | None:
        """The search of the sweep, if it has one."""
        return self.sweep.search

    def scenarios(self, tuned: dict[str, Any] | None = None) -> list[Scenario]:
        """Returns the scenarios of all runs. Raises ScenarioError with every problem.

        tuned: values of keys that a search sets; for the others, an example is taken.
        """
        return [scenario for group in self.groups(tuned) for scenario in group]

    def groups(self, tuned: dict[str, Any] | None = None) -> list[list[Scenario]]:
        """Returns what `scenarios` does, in groups that differ only in their seeds."""
        found: dict[Problem, list[str]] = {}
        groups: list[list[Scenario]] = []
        points, example = 0, _example(self.search)
        for point in self._points():
            points += 1
            try:
                scenario = self._build(point, example | (tuned or {}))
            except ScenarioError as error:
                for problem in error.problems:
                    found.setdefault(problem, []).append(point.label)
                continue
            if not groups or point.first:
                groups.append([])
            groups[-1].append(scenario)
        if found:
            raise ScenarioError(self.source, [_where(problem, labels, points) for problem, labels in found.items()])
        return groups

    def _points(self) -> Iterator[_Point]:
        seeds = self.sweep.grid.get("seed", [None])
        for case, settings in self.sweep.cases.items() or [("", {})]:
            rest = {key: values for key, values in self.sweep.grid.items() if key != "seed"}
            for values in itertools.product(*rest.values()):
                for place, seed in enumerate(seeds):
                    chosen = dict(zip(rest, values, strict=True)) | ({} if seed is None else {"seed": seed})
                    yield _Point(case, settings, chosen, place == 0)

    def _build(self, point: _Point, tuned: dict[str, Any]) -> Scenario:
        raw = copy.deepcopy(self.raw)
        varied = point.chosen | tuned
        blocks = [(key, value) for key, value in self.last if any(other.startswith(f"{key}.") for other in varied)]
        others = [pair for pair in self.last if pair not in blocks]
        # A block must be set before the keys in it that vary, because it would undo them.
        settings = [*blocks, *varied.items(), *others]
        problems = set_case(raw, point.case_settings)
        problems += [p for path, value in settings if (p := assign(raw, path, copy.deepcopy(value), path))]
        if problems:
            raise ScenarioError(self.source, problems)
        name_after(raw, point.case)
        return parse_scenario(raw, self.source)


@dataclass(frozen=True)
class _Point:
    """A combination of a case and of values of the grid."""

    case: str
    case_settings: dict[str, Any]
    chosen: dict[str, Any]  # values of the grid's keys
    first: bool  # whether its seed is the first

    @property
    def label(self) -> str:
        """Name of the combination in error messages."""
        return ", ".join([*([self.case] if self.case else []), *(_spell(*pair) for pair in self.chosen.items())])


def load_sweep(
    path: str | Path, overrides: Sequence[str] = (), search: Sequence[str] = (), cases: Sequence[str] | None = None
) -> Plan:
    """Loads the sweep of a scenario file; without a block `sweep:`, it is a single run.

    overrides: such as "local.lr=0.1", "local.lr=0.1,0.3" for a key that takes several values in turn, or
    "sweep.search.trials=4" for a key of the sweep itself. search: ranges, such as "local.lr=0.001,1,log". Both take
    precedence over the file. cases: the names of the cases to take; None: all of them.

    Raises ScenarioError with every problem of the file, the sweep and the scenarios that it makes.
    """
    raw, source = read(path), str(path)
    block = copy.deepcopy(raw.pop("sweep", None))
    problems: list[Problem] = []
    if block is None:
        block = {}
    elif not isinstance(block, dict) or not block:
        raise ScenarioError(source, [Problem("sweep", f"must have grid, cases or search in it, got {quoted(block)}")])
    else:
        _sweep(block, source)  # raises ScenarioError if the file itself is wrong
    last: list[tuple[str, Any]] = []
    for key, values in _values("--set", overrides, problems):
        if key.startswith("sweep."):
            problem = assign(block, key.removeprefix("sweep."), values[0] if len(values) == 1 else values, "--set")
            problems += [problem] if problem else []
            continue
        grid = block.setdefault("grid", {})
        grid.pop(key, None)
        if len(values) > 1:
            grid[key] = values
        else:
            last.append((key, values[0]))
    for key, values in _values("--search", search, problems):
        if range := _range(values):
            block.setdefault("search", {}).setdefault("over", {})[key] = range
        else:
            text = f"{key} must be LOW,HIGH or LOW,HIGH,log or a block, got {quoted(values)}"
            problems.append(Problem("--search", text))
    if cases is not None:
        problems += _choose(block, cases)
    if problems:
        raise ScenarioError(source, problems)
    found = _sweep(block, source)
    plan = Plan(source, raw, found, last)
    if problems := [*_refused(plan)]:
        raise ScenarioError(source, problems)
    scenarios = plan.scenarios()
    return replace(plan, direction=direction_of(plan.search, scenarios, source)) if plan.search else plan


def _choose(block: dict[str, Any], cases: Sequence[str]) -> list[Problem]:
    """Removes all cases but these from the plain data of a sweep, in place. Returns a problem if one of them does
    not exist."""
    known = block.get("cases", {})
    if strangers := [case for case in cases if case not in known]:
        text = f"must be some of {', '.join(known) or 'the file, which has none'}, got {', '.join(strangers)}"
        return [Problem("--cases", text)]
    block["cases"] = {case: known[case] for case in cases}
    return []


def _example(search: Search | None) -> dict[str, Any]:
    """Returns a value for each key that is tuned; {} without a search."""
    over = search.over if search else {}
    return {key: range.low if range.choices is None else range.choices[0] for key, range in over.items()}


def _refused(plan: Plan) -> Iterator[Problem]:
    """Yields a problem for each key that a search cannot tune, because it is given or is the seed."""
    given = {*plan.sweep.grid, *(key for key, _ in plan.last)}
    for key in plan.search.over if plan.search else ():
        if key == "seed":
            text = "must not be tuned: a trial takes the mean over seeds; leave it out"
            yield Problem("sweep.search.over.seed", text)
        elif key in given:
            yield Problem(f"sweep.search.over.{key}", "is to be tuned, but is also set or in the grid; leave one out")


def _values(option: str, texts: Sequence[str], problems: list[Problem]) -> list[tuple[str, list[Any]]]:
    """Returns each key with its values, which commas separate. Adds what is wrong to `problems`."""
    argument = "search" if option == "--search" else "overrides"
    found, wrong = settings_of(texts, argument, option, lambda text: parse(f"[{text}]"))
    problems += [
        *wrong,
        *(Problem(option, f"{key} must be set to a value, got none") for key, some in found if not some),
    ]
    return [(key, some) for key, some in found if some]


def _range(values: list[Any]) -> dict[str, Any] | None:
    """Returns the range given as low,high or low,high,log, or as a block; None if it is none of these."""
    match values:
        case [dict() as block]:
            return block
        case [low, high]:
            return {"low": low, "high": high}
        case [low, high, "log"]:
            return {"low": low, "high": high, "log": True}
    return None


def _sweep(block: dict[str, Any], source: str) -> Sweep:
    try:
        return Sweep.model_validate(block)
    except ValidationError as error:
        problems = [Problem(f"sweep.{p.path}".rstrip("."), p.text) for p in explain(error, Sweep, block)]
        raise ScenarioError(source, problems) from None


def _spell(key: str, value: Any) -> str:
    return f"{key}={value.get('name', value) if isinstance(value, dict) else value}"


def _where(problem: Problem, labels: list[str], points: int) -> Problem:
    """Returns the problem. If only some of the runs have it, its text names them."""
    if len(labels) == points:
        return problem
    others = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    return Problem(problem.path, f"{problem.text} (in run {labels[0]}{others})")
