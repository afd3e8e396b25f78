"""The command `run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raysim.cli.bad_input import refuse
from raysim.cli.options import Address, Out, Overrides, ScenarioFiles
from raysim.errors import ScenarioError
from raysim.scenario import Scenario, load_scenario


def run(
    scenarios: ScenarioFiles,
    overrides: Overrides = None,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run in this process, without Ray; the numbers are the same.")
    ] = False,
    dry: Annotated[bool, typer.Option("--dry", help="Simulate the timeline only; nothing is trained.")] = False,
    address: Address = None,
    out: Out = Path("runs"),
) -> None:
    """Run scenarios, one after another. The exit code is 3 if one of them diverged."""
    loaded = _load(scenarios, overrides or [])
    from raysim.cli.display import carry_out, exit_code

    if not (inline or dry):
        from raysim.runner import connect

        connect(loaded, address)  # before the progress display starts, because Ray prints something
    results = [carry_out(scenario, inline=inline, dry=dry, address=address, out=out) for scenario in loaded]
    raise typer.Exit(exit_code(*results))


def _load(paths: list[Path], overrides: list[str]) -> list[Scenario]:
    """Reads all files, and refuses all of them if one is wrong, so that none is started."""
    scenarios, wrong = [], []
    for path in paths:
        try:
            scenarios.append(load_scenario(path, overrides))
        except ScenarioError as error:
            wrong.append(error)
    refuse(wrong)
    return scenarios
