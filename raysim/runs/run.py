"""Runs scenarios from Python, and goes on with runs that ended early: `raysim.run` and `raysim.resume`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raysim.observers.observer import Watcher
from raysim.runs.changes import resumed
from raysim.runs.dry import dry_run
from raysim.runs.execution import Execution
from raysim.runs.launch import execution_of, fetch, launch, new_folder
from raysim.runs.lock import locked
from raysim.runs.observing import watching
from raysim.runs.place import RunPlace
from raysim.runs.previous import EarlierRuns, OutOfDate, going_on
from raysim.runs.result import Result
from raysim.scenario import Scenario
from raysim.scenario.load import scenario_of
from results import open_run
from results.disk import require_folder
from results.location import location


def run(
    scenario: Scenario | dict[str, Any] | str | Path,
    *,
    out: str | Path = "runs",
    inline: bool = False,
    local: int | None = None,
    dry: bool = False,
    address: str | None = None,
    resume: bool = False,
    observers: Sequence[Watcher] = (),
    progress: bool = True,
) -> Result:
    """Runs a scenario and returns its result. Everything that the run writes goes to a new folder below `out`,
    which may also be a URI, such as s3://bucket/runs.

    scenario: a Scenario, plain data as a file holds them, or the path of a file. In plain data, a part may stand for a
    block.

    inline: run in this process, without Ray; the numbers are the same. local: run in so many worker processes of this
    machine, also without Ray. dry: write the timeline only, and train nothing.
    address: the address of a Ray cluster; by default the Ray to which this process is connected, or else that in
    RAY_ADDRESS, or else a new local one. observers: who is told how the run goes on, beside those of `run.observers`:
    each an `Observer`, or a function that is called with a `Progress`. If one raises StopRun, the run ends there with
    the status "stopped".
    resume: if `out` holds a run of the scenario that is over and not out of date, return its result; if it holds one
    that ended early, go on with that. A run that diverges ends there with the status "diverged", unless
    `run.on_divergence` is go_on.
    progress: show how far the run is, by a bar in a terminal, and elsewhere by a line on standard error every ten
    seconds.

    If the run is interrupted, as by Ctrl-C, it raises Interrupted, a KeyboardInterrupt with a `result`; `resume` goes
    on with it.

    Raises RunFailed if a job of a client or of the server raises an exception; ScenarioError if the scenario is wrong,
    if a dry run cannot know the timeline, or if an inline run pins another `resources.cpu_capability` than torch, once
    loaded, has here; actors.MissingResources if there is no cluster, if it is too small or not the one to which this
    process is connected, and then no folder is made; results.CannotWrite if the folder cannot be made;
    results.UnknownLocation if `out` is a URI with a scheme that is not known, or whose library is not installed.
    """
    scenario = scenario_of(scenario)
    out = location(out)
    require_folder(out)
    if dry:
        fetch(scenario)
        return dry_run(scenario, lambda: new_folder(out, f"{scenario.name}-dry"))
    place = RunPlace(inline, local, address)
    before: Path | None = None
    if resume:
        earlier = EarlierRuns(out)
        if (over := earlier.find(scenario)) and not isinstance(over, OutOfDate):
            return Result(over)
        before = earlier.to_resume(scenario)
    with going_on(before, scenario), watching(scenario, observers, progress) as observing:
        return launch(scenario, lambda: execution_of(scenario, out, before), place, observing)


def resume(
    folder: str | Path,
    overrides: Sequence[str] = (),
    *,
    inline: bool = False,
    local: int | None = None,
    address: str | None = None,
    observers: Sequence[Watcher] = (),
    progress: bool = True,
) -> Result:
    """Goes on with a run that ended early, or with a finished one for more rounds, and returns its result.

    It goes on from the run's checkpoint, or from the beginning if it has none. Model, tables and digest are those of a
    run that was never interrupted, on any number of workers.

    folder: the run's, or its URI. overrides: keys to change, such as "run.rounds=1000" or "resources.client_actors=4".
    For the other arguments, see `run`. Raises CannotGoOn if the folder holds nothing to go on with; ScenarioError if a
    key would change what the run has written already; DamagedCheckpoint if a file of the checkpoint is damaged.
    """
    place = RunPlace(inline, local, address)
    folder = open_run(location(folder)).folder.resolve()  # raises NotARun
    with locked(folder) as lockable:
        earlier = open_run(folder)
        scenario = resumed(earlier, lockable, overrides)
        sweep = earlier.info.get("sweep") or {}
        of_sweep = {"sweep": sweep.get("name"), "label": sweep.get("label")}
        execution = Execution(scenario, folder, goes_on=True)
        with watching(scenario, observers, progress, **of_sweep) as observing:
            return launch(scenario, lambda: execution, place, observing)


def scenario_to_resume(folder: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Returns the scenario with which the run in a folder would go on. Raises what `resume` does."""
    open_run(folder)  # raises NotARun
    with locked(folder) as lockable:
        return resumed(open_run(folder), lockable, overrides)
