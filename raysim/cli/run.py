"""The commands `run`, `resume` and `fork`, which carry out runs."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.display import exit_code, hint, sum_up, watch
from raysim.cli.ending import ending_by_signals, refuse, refusing_wrong_runs, tell
from raysim.cli.hint import CommandClock
from raysim.cli.options import (
    Address,
    Case,
    Inline,
    Local,
    Log,
    Observe,
    Out,
    Overrides,
    RunFolder,
    ScenarioFiles,
    named_observers,
    place_of,
)
from raysim.engine.checkpoint import Checkpoint
from raysim.observers import Observer
from raysim.parts.errors import ScenarioError
from raysim.runs import fork as forks
from raysim.runs import run as runs
from raysim.runs.observing import observers_of
from raysim.runs.place import RunPlace
from raysim.runs.result import Result
from raysim.scenario import Scenario, load_scenario
from raysim.sweep.batch import labels


def run(
    scenarios: ScenarioFiles,
    overrides: Overrides = None,
    case: Case = None,
    inline: Inline = False,
    local: Local = None,
    dry: Annotated[bool, typer.Option("--dry", help="Simulate the timeline only; nothing is trained.")] = False,
    address: Address = None,
    out: Out = Path("runs"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the scenario's last run below --out, if it ended early.")
    ] = False,
    observe: Observe = None,
    log: Log = None,
) -> None:
    """Run scenarios, one after another. One that fails does not stop the next. The exit code is 3 if one diverged."""
    place = RunPlace(inline=True) if dry else place_of(inline, local, address)
    loaded = _load(scenarios, overrides or [], case)
    watchers = named_observers(observe, log)
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out, "resume": resume}

    def carry_out(scenario: Scenario, label: str | None = None) -> Result:
        own = [observer.for_run() for observer in watchers]
        start = partial(runs.run, scenario, dry=dry, progress=False, **how)
        return watch(scenario, lambda shown: start(observers=[shown, *own]), place, label=label, dry=dry)

    with ending_by_signals():
        clock = CommandClock()
        place.connect(*loaded)  # before the progress display starts, because Ray prints something
        if len(loaded) == 1:
            result = carry_out(loaded[0])
            hint(clock.sooner(result.folder))
            raise typer.Exit(exit_code(result))
        ends: list[Result | Exception] = []
        names = labels(loaded)
        for scenario, name in zip(loaded, names, strict=True):
            try:
                ends.append(carry_out(scenario, name))
            except Exception as error:  # whatever it is, the next scenario is run
                tell(error)
                ends.append(error)
        sum_up(names, ends)
    raise typer.Exit(exit_code(*ends))


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
    place, watchers = place_of(inline, local, address), named_observers(observe, log)
    with refusing_wrong_runs():
        scenario = runs.scenario_to_resume(folder, overrides or [])
    checkpoint = Checkpoint.read(folder)
    begin = f"round {checkpoint.round + 1}" if checkpoint else "its beginning, because it has no checkpoint"
    typer.echo(f"{folder.name} goes on from {begin}")
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address}
    _go_on(scenario, partial(runs.resume, folder, overrides or [], **how), watchers, place)


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
    place, watchers = place_of(inline, local, address), named_observers(observe, log)
    with refusing_wrong_runs():
        _, scenario = forks.scenario_to_fork(folder, at, overrides or [])
    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out}
    _go_on(scenario, partial(forks.fork, folder, at, overrides or [], **how), watchers, place)


def _go_on(scenario: Scenario, start: Callable[..., Result], watchers: list[Observer], place: RunPlace) -> None:
    """Shows the progress of a run, and ends the command with its exit code. start: gets the observers."""
    with ending_by_signals():
        place.connect(scenario)
        begin = partial(start, progress=False)
        result = watch(scenario, lambda shown: begin(observers=[shown, *watchers]), place)
        raise typer.Exit(exit_code(result))


def _load(paths: list[Path], overrides: list[str], case: str | None) -> list[Scenario]:
    """Reads all files, and refuses all of them if one is wrong, so that none is started."""
    scenarios, wrong = [], []
    for path in paths:
        try:
            scenarios.append(load_scenario(path, overrides, case))
            observers_of(scenarios[-1])  # raises it, too
        except ScenarioError as error:
            wrong.append(error)
    if wrong:
        refuse(*wrong)
    return scenarios
