"""Commands on scenario files that run nothing: `check` and `schema`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from raysim.cli.bad_input import refuse
from raysim.cli.options import Overrides, ScenarioFiles
from raysim.parts.errors import Problem, ScenarioError
from raysim.runs.inspection import inspect
from raysim.scenario import Scenario
from raysim.scenario.checks import notes_of
from raysim.sweep import load_sweep
from raysim.sweep.settings import ScenarioFile


def check(
    scenarios: ScenarioFiles,
    overrides: Overrides = None,
    data: Annotated[
        bool, typer.Option("--data", help="Also load the data and the model, and say what is missing or does not fit.")
    ] = False,
) -> None:
    """Check scenario files and their sweeps; this needs neither Ray nor, without --data, the data."""
    wrong = []
    for path in scenarios:
        try:
            plan = load_sweep(path, overrides or [])
        except ScenarioError as error:
            wrong.append(error)
            continue
        found = plan.scenarios()
        told: list[str] = []
        if data:
            problems, notes, told = _inspect(found)
        else:
            problems, notes = [], [note for scenario in found for note in notes_of(scenario)]
        if problems:
            wrong.append(ScenarioError(str(path), problems))
            continue
        first, runs = found[0], f", {len(found)} runs" if len(found) > 1 else ""
        runs += ", to be tuned" if plan.search else ""
        typer.echo(f"{path}: right ({first.name}, {first.algorithm.name}, {first.data.clients} clients{runs})")
        for text in dict.fromkeys(told):
            typer.echo(f"{path}: data: {text}")
        for note in dict.fromkeys(notes):
            typer.echo(f"{path}: note: {note}")
    if wrong:
        refuse(*wrong)


def _inspect(scenarios: list[Scenario]) -> tuple[list[Problem], list[str], list[str]]:
    """Returns the problems, the warnings and the readings of data of these scenarios of one file."""
    found = [inspect(scenario) for scenario in scenarios]
    problems = dict.fromkeys(problem for one in found for problem in one.problems)
    notes = [note for one in found for note in one.notes]
    return list(problems), notes, [text for one in found for text in one.meaning]


def schema() -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them."""
    typer.echo(json.dumps(ScenarioFile.model_json_schema(), indent=2))
