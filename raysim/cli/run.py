"""The commands `run`, `resume` and `fork`, which carry out runs."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.display import exit_code, hint, watch
from raysim.cli.ending import ending_by_signals, refuse, refusing_wrong_runs
from raysim.cli.hint import CommandClock
from raysim.cli.options import Address, Case, Inline, Local, Out, Overrides, RunFolder, place_of
from raysim.engine.checkpoint import Checkpoint
from raysim.parts.errors import ScenarioError
from raysim.runs import fork as forks
from raysim.runs import run as runs
from raysim.runs.observing import observers_of
from raysim.runs.place import RunPlace
from raysim.runs.result import Result
from raysim.scenario import Scenario, load_scenario


def run(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (YAML).", show_default=False)],
    overrides: Overrides = None,
    case: Case = None,
    inline: Inline = False,
    local: Local = None,
    dry: Annotated[bool, typer.Option("--dry", help="Simulate the timeline only; nothing is trained.")] = False,
    address: Address = None,
    out: Out = Path("runs"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the scenario's last run below --out, if it ended early.")
    ] = False,
) -> None:
    """Run a scenario. The exit code is 3 if it diverged."""
    place = RunPlace(inline=True) if dry else place_of(inline, local, address)
    try:
        loaded = load_scenario(scenario, overrides or [], case)
        observers_of(loaded)  # raises it, too
    except ScenarioError as error:
        refuse(error)
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out, "resume": resume}
    clock = CommandClock()
    _carry_out(loaded, partial(runs.run, loaded, dry=dry, **how), place, clock, dry=dry)


def resume(
    folder: RunFolder,
    overrides: Overrides = None,
    inline: Inline = False,
    local: Local = None,
    address: Address = None,
) -> None:
    """Continue a run that ended early, or a finished one for more rounds."""
    place = place_of(inline, local, address)
    with refusing_wrong_runs():
        scenario = runs.scenario_to_resume(folder, overrides or [])
    checkpoint = Checkpoint.read(folder)
    begin = f"round {checkpoint.round + 1}" if checkpoint else "its beginning, because it has no checkpoint"
    typer.echo(f"{folder.name} continues from {begin}")
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address}
    _carry_out(scenario, partial(runs.resume, folder, overrides or [], **how), place)


def fork(
    folder: RunFolder,
    at: Annotated[int, typer.Option(min=1, help="Server steps, or rounds of peers, after which the settings change.")],
    overrides: Overrides = None,
    inline: Inline = False,
    local: Local = None,
    address: Address = None,
    out: Out = Path("runs"),
) -> None:
    """Start a new run from a version of another one, with other settings from there on."""
    place = place_of(inline, local, address)
    with refusing_wrong_runs():
        _, scenario = forks.scenario_to_fork(folder, at, overrides or [])
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out}
    _carry_out(scenario, partial(forks.fork, folder, at, overrides or [], **how), place)


def _carry_out(
    scenario: Scenario,
    start: Callable[..., Result],
    place: RunPlace,
    clock: CommandClock | None = None,
    *,
    dry: bool = False,
) -> None:
    """Shows the progress of a run, and ends the command with its exit code. start: gets the observers. clock: says what
    would have been sooner."""
    with ending_by_signals():
        place.connect(scenario)  # before the progress display starts, because Ray prints something
        begin = partial(start, progress=False)
        result = watch(scenario, lambda shown: begin(observers=[shown]), place, dry=dry)
        hint(clock.sooner(result.folder) if clock else None)
        raise typer.Exit(exit_code(result))
