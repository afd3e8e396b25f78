"""Commands on scenario files that run nothing: `check` and `schema`."""

from __future__ import annotations

import json

import typer

from raysim.cli.bad_input import refuse
from raysim.cli.options import Overrides, ScenarioFiles
from raysim.errors import ScenarioError


def check(scenarios: ScenarioFiles, overrides: Overrides = None) -> None:
    """Check scenario files and their sweeps; this needs neither Ray nor data."""
    from raysim.sweep import load_sweep

    wrong = []
    for path in scenarios:
        try:
            plan = load_sweep(path, overrides or [])
        except ScenarioError as error:
            wrong.append(error)
            continue
        found = plan.scenarios()
        first, runs = found[0], f", {len(found)} runs" if len(found) > 1 else ""
        runs += ", to be tuned" if plan.search else ""
        typer.echo(f"{path}: right ({first.name}, {first.algorithm.name}, {first.data.clients} clients{runs})")
    refuse(wrong)


def schema() -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them."""
    from raysim.sweep.file import ScenarioFile

    typer.echo(json.dumps(ScenarioFile.model_json_schema(), indent=2))
