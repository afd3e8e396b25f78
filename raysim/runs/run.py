"""Runs scenarios from Python. `run` is available as `raysim.run`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors import JobFailed, SchedulerDied, ValuesLost
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.progress import Progress
from raysim.observers.live import showing
from raysim.observers.observer import Watcher
from raysim.parts.errors import RunFailed, ScenarioError, StopRun
from raysim.parts.process import isolated
from raysim.runs.dry import dry_notes, dry_run, require_plan
from raysim.runs.execution import Execution
from raysim.runs.explained import explained
from raysim.runs.generate import generate_all, keep
from raysim.runs.here import Here
from raysim.runs.lock import locked
from raysim.runs.observing import NewRows, Observing, observers_of
from raysim.runs.on_ray import connect, hired
from raysim.runs.origin import Origin, record_origin
from raysim.runs.previous import EarlierRuns, OutOfDate, going_on
from raysim.runs.result import Interrupted, Result, leaving_result
from raysim.scenario import Scenario
from raysim.scenario.file_checks import file_problems
from raysim.scenario.load import scenario_of
from raysim.scenario.run_settings import Generation
from raysim.workers.device import stand_in
from results import CannotWrite
from results.disk import require_folder, require_space, writing
from results.location import is_local, location

_log = logging.getLogger("raysim")
LEAST_BYTES = 1 << 20  # bytes that must be free for a run to start
MOST_LOSSES = 3  # of values with a node, without a new checkpoint in between, after which a run fails

if TYPE_CHECKING:
    from actors.workforce import Workforce


@leaving_result
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
    progress: show how far the run is, by a bar in a terminal or a notebook, and elsewhere by a line on standard error
    every ten seconds.

    If the run is interrupted, as by Ctrl-C, it raises Interrupted, a KeyboardInterrupt with a `result`. In a notebook
    and at Python's prompt, it returns that result instead: its status is "interrupted", and `resume` goes on with it.

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
        return _dry(scenario, out)
    before: Path | None = None
    if resume:
        earlier = EarlierRuns(out)
        if (over := earlier.find(scenario)) and not isinstance(over, OutOfDate):
            return Result(over)
        before = earlier.to_resume(scenario)
    with going_on(before, scenario), showing(progress) as shown:
        return launch(
            scenario,
            lambda: execution_of(scenario, out, before),
            inline=inline,
            local=local,
            address=address,
            observing=Observing(scenario, observers_of(scenario, [*shown.observers, *observers])),
        )


def execution_of(scenario: Scenario, out: Path, before: Path | None) -> Execution:
    """Returns a run in a new folder or, in that of one that ended early, what goes on with it."""
    return Execution(scenario, before or new_folder(out, scenario.name), goes_on=before is not None)


def launch(
    scenario: Scenario,
    make: Callable[[], Execution],
    *,
    inline: bool,
    local: int | None = None,
    address: str | None,
    observing: Observing,
) -> Result:
    """Gets the actors that a run needs, and carries it out, as `run` does.

    make: returns the execution. It is called only after the cluster has room, so that no folder is made in vain.
    """
    _require_one_place(inline=inline, local=local, address=address)
    stand_in()  # refuses one outside of tests
    _fetch(scenario)
    on_ray = not inline and local is None
    if on_ray:
        connect([scenario], address)
    with hired(scenario) if on_ray else nullcontext(Here.hired(scenario, local)) as workforce:
        execution = make()
        execution = replace(execution, tables=observing.tables, facts=observing.facts | execution.facts)
        with observing.run(execution.folder):
            return carry_out(execution, workforce, observing.take)


def _require_one_place(*, inline: bool, local: int | None, address: str | None) -> None:
    """Raises ValueError if a run is to be in worker processes of this machine, and also somewhere else."""
    if local is not None and (inline or address is not None):
        other = "inline=True" if inline else f"address={address!r}"
        raise ValueError(f"local: must be given without inline and address, got local={local} and {other}; take one")
    if local is not None and local < 1:
        raise ValueError(f"local: must be a number of processes, at least 1, got {local}; None stands for Ray")


def carry_out(
    execution: Execution,
    workforce: Workforce | Here,
    take: Callable[[Progress | NewRows], None],
    origin: Origin | None = None,
) -> Result:
    """Carries out a run in its folder, which must exist, and returns its result.

    origin: None if this process was given the scenario, and so knows it.
    take: called with all that the run yields; it may raise StopRun. Raises RunFailed. Whatever exception it raises,
    such as KeyboardInterrupt, run.json says how the run ended.
    """
    with nullcontext() if execution.goes_on else locked(execution.folder):  # what goes on is locked by who decided so
        return _carry_out(execution, workforce, take, origin or Origin.known_for(execution.scenario))


def _carry_out(
    execution: Execution, workforce: Workforce | Here, take: Callable[[Progress | NewRows], None], origin: Origin
) -> Result:
    _log.info(f"{execution.run} writes to {execution.folder}")
    notes = workforce.notes if isinstance(workforce, Here) else []
    for note in notes:
        _log.warning(f"{execution.run}: {note}")
    facts = record_origin(origin, execution.folder) | execution.facts
    execution = replace(execution, facts={**facts, "notes": [*facts["notes"], *notes]})
    versions: list[int] = []  # from which it went on after values were lost
    try:
        while True:
            try:
                with closing(workforce.run(execution, execution.run)) as steps:
                    for news in steps:
                        take(news)
                break
            except ValuesLost as lost:
                checkpoint = Checkpoint.read(execution.folder)
                versions.append(checkpoint.version if checkpoint else 0)
                if versions[-MOST_LOSSES:] == versions[-1:] * MOST_LOSSES:
                    raise
                where = f"its checkpoint of version {versions[-1]}" if checkpoint else "its beginning"
                _log.warning(f"{execution.run}: {lost}; it goes on from {where}")
                execution = replace(execution, goes_on=True)
    except JobFailed as failed:
        told = explained(failed, execution.scenario)  # a failure of the execution itself is explained already
        cause = f"{told.cause}; {execution.cure}" if isinstance(failed, SchedulerDied) else told.cause
        execution.settle("failed", f"{told.label}: {cause}\n{told.traceback}".strip())
        raise RunFailed(told.label, cause, told.traceback, execution.folder) from None
    except StopRun as stop:
        execution.settle("stopped", early=str(stop))
    except BaseException as end:  # such as Ctrl-C
        status = execution.settle("interrupted")
        then = execution.cure if status == "interrupted" else f"it had {status} by then"
        _log.info(f"{execution.run} was interrupted; {then}")
        if isinstance(end, KeyboardInterrupt):
            raise Interrupted(Result(execution.folder, execution.scenario.model)) from None
        raise
    result = Result(execution.folder, execution.scenario.model)
    if execution.scenario.run.generate is not None and result.run.status == "finished":
        _generate(result, execution.scenario, execution.scenario.run.generate)
    return result


def _generate(result: Result, scenario: Scenario, asked: Generation) -> None:
    """Adds what the final model makes of the prompts to the run's folder. If it cannot, it warns: the run is done."""
    try:
        settings = (asked.prompts, asked.tokens, asked.temperature, scenario.seed)
        with isolated(torch=True):
            for text in generate_all(result, *settings, scenario.data):
                keep(result.folder, text)
    except (OSError, ValueError) as error:
        _log.warning(f"{result.folder.name}: run.generate: {error}; the run itself is finished")


def _fetch(scenario: Scenario) -> None:
    """Reads and checks files of the world at URIs, too. What was fetched then travels with the scenario."""
    if problems := [*file_problems(scenario, fetch=True)]:
        raise ScenarioError(scenario.name, problems)


def _dry(scenario: Scenario, out: Path) -> Result:
    _fetch(scenario)
    require_plan(scenario)
    for note in dry_notes(scenario):
        _log.warning(f"{scenario.name}: {note}")
    folder = new_folder(out, f"{scenario.name}-dry")
    try:
        with isolated():
            dry_run(scenario, folder)
    except (Exception, SystemExit) as error:  # missing data, scripted picks that cannot be followed, a user's class
        failed = explained(JobFailed.by(error, "the timeline"), scenario)
        raise RunFailed(failed.label, failed.cause, failed.traceback, folder) from error
    return Result(folder)


def new_folder(out: Path, name: str) -> Path:
    """Makes an empty folder, named after the run and the time, and returns its absolute path.

    On an object store, where two runs could take one name at the same moment, the name also has random digits.
    Raises results.CannotWrite if it cannot be made, or if there is no room for even a small run.
    """
    require_folder(out)
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    if not is_local(out):
        return out / f"{stem}-{os.urandom(4).hex()}"
    for suffix in ["", *(f"-{n}" for n in range(2, 1000))]:
        folder = out.resolve() / (stem + suffix)
        try:
            with writing(folder):
                require_space(folder, LEAST_BYTES)
                folder.mkdir(parents=True)
        except CannotWrite:
            if folder.is_dir():  # another run has this name
                continue
            raise
        return folder
    raise FileExistsError(f"{out}: already holds a thousand runs that started in this second")
