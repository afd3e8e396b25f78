"""Commands on scenario files that run nothing: `check` and `schema`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.ending import refuse
from raysim.cli.options import Overrides, ScenarioFiles
from raysim.parts.errors import ScenarioError
from raysim.runs.inspection import inspect
from raysim.scenario.checks import notes_of
from raysim.sweep import load_sweep
from raysim.sweep.settings import ScenarioFile


def check(
    scenarios: ScenarioFiles,
    overrides: Overrides = None,
    data: Annotated[
        bool, typer.Option("--data", help="Also load the data and the model, and say what is missing or does not fit.")
    ] = False,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Also load the data, and say with which noise `release` keeps all clients to this epsilon."),
    ] = None,
    propose: Annotated[
        bool, typer.Option(help="Guess what data files or folders hold, given in place of scenarios, and say why.")
    ] = False,
) -> None:
    """Check scenario files and their sweeps; this needs neither Ray nor, without --data, the data."""
    if propose:
        proposals(scenarios)
        return
    wrong = []
    for path in scenarios:
        try:
            meets = [] if epsilon is None else ["release.multiplier=auto", f"privacy.epsilon={epsilon}"]
            plan = load_sweep(path, [*(overrides or []), *meets])
        except ScenarioError as error:
            wrong.append(error)
            continue
        found = plan.scenarios()
        inspected = [inspect(scenario) for scenario in found] if data or meets else []
        if problems := dict.fromkeys(problem for one in inspected for problem in one.problems):
            wrong.append(ScenarioError(str(path), list(problems)))
            continue
        told = dict.fromkeys(text for one in inspected for text in one.meaning)
        noted = [one.notes for one in inspected] if inspected else [*map(notes_of, found)]
        first, runs = found[0], f", {len(found)} runs" if len(found) > 1 else ""
        runs += ", to be tuned" if plan.search else ""
        typer.echo(f"{path}: right ({first.name}, {first.algorithm.name}, {first.data.clients} clients{runs})")
        for text in told:
            typer.echo(f"{path}: data: {text}")
        for text in dict.fromkeys(text for one in inspected for text in one.privacy):
            typer.echo(f"{path}: privacy: {text}")
        for note in dict.fromkeys(note for notes in noted for note in notes):
            typer.echo(f"{path}: note: {note}")
    if wrong:
        refuse(*wrong)


def proposals(paths: list[Path]) -> None:
    """Prints the block `data` of a scenario file for each file or folder of samples."""
    from raysim.data.propose import propose

    for path in paths:
        try:
            typer.echo(propose(path), nl=False)
        except (ValueError, OSError) as error:
            refuse(f"{path}: {error}")


def schema() -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **ScenarioFile.model_json_schema()}
    schema["properties"]["extends"] = {"type": "string", "description": "A file whose keys hold where this has none."}
    schema["patternProperties"] = {"^x-": {"description": "Left out: for blocks that are repeated by alias."}}
    typer.echo(json.dumps(schema, indent=2))
