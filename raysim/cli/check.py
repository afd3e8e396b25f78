"""Commands on scenario files that run nothing: `check` and `schema`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from raysim.cli.bad_input import refuse
from raysim.cli.options import Overrides, ScenarioFiles
from raysim.errors import Problem, ScenarioError
from raysim.scenario import Scenario


def check(
    scenarios: ScenarioFiles,
    overrides: Overrides = None,
    data: Annotated[
        bool, typer.Option("--data", help="Also load the data and the model, and say what is missing or does not fit.")
    ] = False,
) -> None:
    """Check scenario files and their sweeps; this needs neither Ray nor, without --data, the data."""
    from raysim.sweep import load_sweep

    wrong = []
    for path in scenarios:
        try:
            plan = load_sweep(path, overrides or [])
        except ScenarioError as error:
            wrong.append(error)
            continue
        found = plan.scenarios()
        if data and (problems := _data_problems(found)):
            wrong.append(ScenarioError(str(path), problems))
            continue
        first, runs = found[0], f", {len(found)} runs" if len(found) > 1 else ""
        runs += ", to be tuned" if plan.search else ""
        typer.echo(f"{path}: right ({first.name}, {first.algorithm.name}, {first.data.clients} clients{runs})")
    refuse(wrong)


def _data_problems(scenarios: list[Scenario]) -> list[Problem]:
    """Returns what is wrong with what these scenarios of one file name, each problem once."""
    from raysim.engine.inspection import data_problems

    return list(dict.fromkeys(problem for scenario in scenarios for problem in data_problems(scenario)))


def schema() -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them."""
    from raysim.sweep.file import ScenarioFile

    typer.echo(json.dumps(ScenarioFile.model_json_schema(), indent=2))
