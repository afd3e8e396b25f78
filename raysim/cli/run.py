"""The command `run`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from raysim.cli.bad_input import refuse, tell
from raysim.cli.display import exit_code, sum_up, watch
from raysim.cli.options import (
    Address,
    Case,
    Inline,
    Local,
    Log,
    Observe,
    Out,
    Overrides,
    ScenarioFiles,
    named_observers,
    place,
)
from raysim.cli.signals import ending_by_signals
from raysim.observers import Observer
from raysim.parts.errors import ScenarioError
from raysim.runs.observing import observers_of
from raysim.runs.on_ray import connect
from raysim.runs.result import Result
from raysim.runs.run import run as start
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
    where = place(inline=inline or dry, local=None if dry else local, address=address)
    loaded = _load(scenarios, overrides or [], case)
    watchers = named_observers(observe, log)

    how: dict[str, Any] = {"inline": inline, "local": local, "address": address, "out": out, "resume": resume}

    def carry_out(scenario: Scenario, label: str | None = None) -> Result:
        own = [observer.for_run() for observer in watchers]

        def begin(shown: Observer) -> Result:
            return start(scenario, observers=[shown, *own], dry=dry, progress=False, **how)

        return watch(scenario, begin, where=where, label=label, dry=dry)

    with ending_by_signals():
        if where == "Ray":
            connect(loaded, address)  # before the progress display starts, because Ray prints something
        if len(loaded) == 1:
            raise typer.Exit(exit_code(carry_out(loaded[0])))
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
