"""The commands `resume` and `fork`, which go on with runs, and `end`, after which none does."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.bad_input import refusing_wrong_runs
from raysim.cli.display import exit_code, watch
from raysim.cli.options import Address, Local, Log, Observe, Out, Overrides, RunFolder, named_observers, place
from raysim.cli.signals import ending_by_signals
from raysim.engine.checkpoint import Checkpoint
from raysim.observers import Observer
from raysim.runs.fork import fork as start_fork
from raysim.runs.fork import scenario_to_fork
from raysim.runs.on_ray import connect
from raysim.runs.result import Result
from raysim.runs.resume import end as declare
from raysim.runs.resume import resume as go_on
from raysim.runs.resume import scenario_to_resume
from raysim.scenario import Scenario

Inline = Annotated[bool, typer.Option("--inline", help="Go on in this process, without Ray; the numbers are the same.")]


def resume(
    folder: RunFolder,
    overrides: Overrides = None,
    inline: Inline = False,
    local: Local = None,
    address: Address = None,
    observe: Observe = None,
    log: Log = None,
) -> None:
    """Go on with a run that ended early, or with a finished one for more rounds."""
    where = place(inline=inline, local=local, address=address)
    watchers = named_observers(observe, log)
    with refusing_wrong_runs():
        scenario = scenario_to_resume(folder, overrides or [])
    checkpoint = Checkpoint.read(folder)
    begin = f"round {checkpoint.round + 1}" if checkpoint else "its beginning, because it has no checkpoint"
    typer.echo(f"{folder.name} goes on from {begin}")
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "progress": False}
    _watch(scenario, partial(go_on, folder, overrides or [], **how), watchers, where, address)


def fork(
    folder: RunFolder,
    at: Annotated[int, typer.Option(min=1, help="Server steps, or rounds of peers, after which the settings change.")],
    overrides: Overrides = None,
    inline: Inline = False,
    local: Local = None,
    address: Address = None,
    out: Out = Path("runs"),
    observe: Observe = None,
    log: Log = None,
) -> None:
    """Start a new run from a version of another one, with other settings from there on."""
    where = place(inline=inline, local=local, address=address)
    watchers = named_observers(observe, log)
    with refusing_wrong_runs():
        _, scenario = scenario_to_fork(folder, at, overrides or [])
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out, "progress": False}
    _watch(scenario, partial(start_fork, folder, at, overrides or [], **how), watchers, where, address)


def end(folder: RunFolder) -> None:
    """Declare a run over that ended early, so that comparisons count it and sweeps do not go on with it."""
    with refusing_wrong_runs():
        result = declare(folder)
    typer.echo(f"{result.folder.name} is over, {result.run.status}; `raysim resume` would go on with it")


def _watch(
    scenario: Scenario, start: Callable[..., Result], watchers: list[Observer], where: str, address: str | None
) -> None:
    """Shows how a run goes on, and ends the command with its exit code. start: gets the observers."""
    with ending_by_signals():
        if where == "Ray":
            connect([scenario], address)  # before the progress display starts, because Ray prints something
        raise typer.Exit(exit_code(watch(scenario, lambda shown: start(observers=[shown, *watchers]), where=where)))
