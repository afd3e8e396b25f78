"""The way that every run takes, whether it is new, continues or is a fork: it gets workers and a folder, and is carried
out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from actors import JobFailed, SchedulerDied, ValuesLost
from raysim.engine.checkpoint import Checkpoint
from raysim.engine.progress import Progress
from raysim.parts.errors import RunFailed, ScenarioError, StopRun
from raysim.runs.continuing import locked
from raysim.runs.execution import Execution
from raysim.runs.observing import NewRows, Observing
from raysim.runs.order import explained
from raysim.runs.origin import Origin, record_origin
from raysim.runs.place import RunPlace, WithoutRay
from raysim.runs.result import Interrupted, Result
from raysim.scenario import Scenario
from raysim.scenario.block_checks import file_problems
from raysim.workers.device import stand_in_bytes
from results import CannotWrite
from results.disk import require_folder, require_space, writing
from results.info import Status
from results.location import is_local

if TYPE_CHECKING:
    from actors.workforce import Workforce

_log = logging.getLogger("raysim")
LEAST_BYTES = 1 << 20  # bytes that must be free for a run to start
MOST_LOSSES = 10  # of values with a node, without a new checkpoint in between, after which a run fails

Take = Callable[[Progress | NewRows], None]


def launch(scenario: Scenario, make: Callable[[], Execution], place: RunPlace, observing: Observing) -> Result:
    """Gets the workers that a run needs, and carries it out, as `run` does.

    make: returns the execution. It is called only after there is room, so that a run without room makes no folder.
    """
    stand_in_bytes()  # refuses one outside of tests
    fetch(scenario)
    with place.hired(scenario) as workforce:
        execution = make()
        execution = replace(execution, tables=observing.tables, facts=observing.facts | execution.facts)
        with observing.run(execution.folder):
            return carry_out(execution, workforce, observing.take)


def fetch(scenario: Scenario) -> None:
    """Reads and checks files of the world at URIs, too. What was fetched then travels with the scenario."""
    if problems := [*file_problems(scenario, fetch=True)]:
        raise ScenarioError(scenario.name, problems)


def execution_of(scenario: Scenario, out: Path, before: Path | None) -> Execution:
    """Returns a run in a new folder or, in that of one that ended early, what continues with it."""
    return Execution(scenario, before or new_folder(out, scenario.name), goes_on=before is not None)


def carry_out(
    execution: Execution, workforce: Workforce | WithoutRay, take: Take, origin: Origin | None = None
) -> Result:
    """Carries out a run in its folder, which must exist, and returns its result.

    origin: None if this process was given the scenario, and so knows it.
    take: called with all that the run yields; it may raise StopRun. Raises RunFailed. Whatever exception it raises,
    such as KeyboardInterrupt, run.json says how the run ended.
    """
    scenario, folder = execution.scenario, execution.folder
    with nullcontext() if execution.goes_on else locked(folder):  # what continues is locked by who decided so
        _log.info(f"{execution.run} writes to {folder}")
        notes = workforce.notes if isinstance(workforce, WithoutRay) else []
        for note in notes:
            _log.warning(f"{execution.run}: {note}")
        facts = record_origin(origin or Origin.known_for(scenario), folder) | execution.facts
        execution = replace(execution, facts=facts | {"notes": [*facts["notes"], *notes]})
        try:
            _go_through(execution, workforce, take)
        except JobFailed as failed:
            failure = explained(failed, scenario)  # a failure of the execution itself is explained already
            cause = f"{failure.cause}; {execution.cure}" if isinstance(failed, SchedulerDied) else failure.cause
            execution.settle(Status.FAILED, f"{failure.label}: {cause}\n{failure.traceback}".strip())
            raise RunFailed(failure.label, cause, failure.traceback, folder) from None
        except StopRun as stop:
            execution.settle(Status.STOPPED, early=str(stop))
        except BaseException as end:  # such as Ctrl-C
            status = execution.settle(Status.INTERRUPTED)
            then = execution.cure if status is Status.INTERRUPTED else f"it had {status} by then"
            _log.info(f"{execution.run} was interrupted; {then}")
            if isinstance(end, KeyboardInterrupt):
                raise Interrupted(Result(folder, scenario.model)) from None
            raise
        return Result(folder, scenario.model)


def _go_through(execution: Execution, workforce: Workforce | WithoutRay, take: Take) -> None:
    """Carries out a run to its end. Where values are lost with a node, it continues from the checkpoint."""
    versions: list[int] = []  # from which it continued
    while True:
        try:
            with closing(workforce.run(execution, execution.run)) as steps:
                for news in steps:
                    take(news)
            return
        except ValuesLost as lost:
            checkpoint = Checkpoint.read(execution.folder)
            versions.append(checkpoint.version if checkpoint else 0)
            if versions[-MOST_LOSSES:] == versions[-1:] * MOST_LOSSES:
                raise
            where = f"its checkpoint of version {versions[-1]}" if checkpoint else "its beginning"
            _log.warning(f"{execution.run}: {lost}; it continues from {where}")
            execution = replace(execution, goes_on=True)


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
