"""Runs scenarios from Python, continues runs that ended early, and writes timelines alone: `raysim.run` and
`raysim.resume`."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from actors import JobFailed
from actors.fault import describe
from raysim.data import federate
from raysim.engine.families import family_of
from raysim.engine.recorder import Recorder
from raysim.observers.observer import Watcher
from raysim.parts.errors import Problem, RunFailed, ScenarioError
from raysim.parts.process import isolated
from raysim.runs.continuing import EarlierRuns, OutOfDate, going_on, locked, resumed
from raysim.runs.execution import Execution
from raysim.runs.launch import execution_of, fetch, launch, new_folder
from raysim.runs.observing import watching
from raysim.runs.order import explained
from raysim.runs.origin import Origin, record_origin
from raysim.runs.place import RunPlace
from raysim.runs.record import RunRecord, now
from raysim.runs.result import Result
from raysim.scenario import Scenario
from raysim.scenario.block_checks import training_problems
from raysim.scenario.checks import notes_of
from raysim.scenario.load import scenario_of
from raysim.scenario.run_settings import TRAVELS
from results import Writer, open_run
from results.disk import require_folder
from results.info import Status
from results.location import location

_log = logging.getLogger("raysim")


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
    address: the address of a Ray cluster, or "local" for a new local Ray with its dashboard; by default the Ray to
    which this process is connected, or else that in RAY_ADDRESS, or else a new local one without a dashboard.
    observers: who follows the run, besides those of `run.observers`: each an `Observer`, or a function that is called
    with a `Progress`. If one raises StopRun, the run ends there with the status "stopped".
    resume: if `out` holds a run of the scenario that is over and not out of date, return its result; if it holds one
    that ended early, continue it. A run that diverges ends there with the status "diverged", unless
    `run.on_divergence` is go_on.
    progress: show how far the run is, by a bar in a terminal, and elsewhere by a line on standard error every ten
    seconds.

    If the run is interrupted, as by Ctrl-C, it raises Interrupted, a KeyboardInterrupt with a `result`; `resume` then
    continues it.

    Raises RunFailed if a job of a client or of the server raises an exception; ScenarioError if the scenario is wrong,
    or if a dry run cannot know the timeline; actors.MissingResources if there is no cluster, if it is too small or not
    the one to which this process is connected, and then no folder is made; results.CannotWrite if the folder cannot be
    made; results.UnknownLocation if `out` is a URI with a scheme that is not known, or whose library is not installed.
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
    """Continues a run that ended early, or a finished one for more rounds, and returns its result.

    It starts at the run's checkpoint, or at the beginning if it has none. Model, tables and digest are those of a run
    that was never interrupted, on any number of workers.

    folder: the run's, or its URI. overrides: keys to change, such as "run.rounds=1000" or "resources.client_actors=4".
    For the other arguments, see `run`. Raises CannotGoOn if the folder holds nothing to continue; ScenarioError if a
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
    """Returns the scenario with which the run in a folder would continue. Raises what `resume` does."""
    open_run(folder)  # raises NotARun
    with locked(folder) as lockable:
        return resumed(open_run(folder), lockable, overrides)


def dry_run(scenario: Scenario, make_folder: Callable[[], Path]) -> Result:
    """Writes the timeline into a folder: who is picked when, and whether each update is used, too late or lost.

    make_folder: makes that folder, once it is clear that the timeline can be known. Raises ScenarioError if it cannot,
    and RunFailed if it turns out to be impossible.
    """
    if problems := [*_unknown(scenario)]:
        raise ScenarioError(scenario.name, problems)
    folder = make_folder()
    try:
        with isolated():
            _write(scenario, folder)
    except (Exception, SystemExit) as error:  # missing data, scripted picks that cannot be followed, a user's class
        failed = explained(JobFailed.by(error, "the timeline"), scenario)
        raise RunFailed(failed.label, failed.cause, failed.traceback, folder) from error
    return Result(folder)


def _write(scenario: Scenario, folder: Path) -> None:
    """Writes tables and run.json."""
    record = RunRecord.begun(
        scenario, folder.name, Status.DRY, dry=True, **record_origin(Origin.known_for(scenario), folder)
    )
    notes = notes_of(scenario)
    if scenario.run.until is not None and (trained := scenario.run.until.trained):
        text = f"an end by {trained} counts only while clients train; this timeline continues without it"
        notes.append(f"run.until: {text}")
    record = record.noting(*notes)
    for note in notes:
        _log.warning(f"{scenario.name}: {note}")
    writer = Writer(folder, folder.name)
    family = family_of(scenario)
    recorder: Recorder = family.recorder(writer)
    outcome: dict[str, Any] = {}
    try:
        federation = federate(scenario.data, scenario.server_data, scenario.seed, scenario.public)
        recorder.partition(federation.partition_table())
        deque(family.dry(recorder, federation, lambda: family.worker(federation).cost()), maxlen=0)
    except (Exception, SystemExit) as error:
        outcome = {"status": Status.FAILED, "error": describe(error)}
        raise
    except BaseException:  # such as Ctrl-C
        outcome = {"status": Status.INTERRUPTED}
        raise
    finally:
        writer.close()
        replace(record, finished_at=now(), **recorder.outcome(), **outcome).write(folder)


def _unknown(scenario: Scenario) -> Iterator[Problem]:
    """Yields what a dry run cannot know."""
    dry = "in a dry run, which does not train"
    until = scenario.run.until
    if math.isinf(min(scenario.run.horizon[:3])) and (until is None or until.budgets.keys().isdisjoint(TRAVELS)):
        got = f"one by {until.trained}" if until else "none"
        cure = "add virtual_time, updates or bytes, or run.rounds, or leave out --dry"
        yield Problem("run.until", f"must have an end that is known {dry}, got {got}; {cure}")
    yield from training_problems(scenario, dry, ", or run it without --dry")
