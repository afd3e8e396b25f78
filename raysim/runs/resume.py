"""Goes on with runs that ended early, or declares them over. `resume` and `end` are available as `raysim.resume` and
`raysim.end`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raysim.engine.checkpoint import Checkpoint
from raysim.observers.live import showing
from raysim.observers.observer import Watcher
from raysim.parts.errors import CannotGoOn
from raysim.runs.changes import BITS, LATER, changed, refuse, refuse_sooner, require_ended, require_no_links
from raysim.runs.execution import Execution
from raysim.runs.folder import now
from raysim.runs.lock import locked
from raysim.runs.observing import Observing, observers_of
from raysim.runs.result import Result, leaving_result
from raysim.runs.run import launch
from raysim.scenario import Scenario
from results import Run, open_run, write_json
from results.disk import require_folder
from results.location import location


@leaving_result
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
    folder = open_run(location(folder)).folder.resolve()  # raises NotARun
    with locked(folder) as lockable:
        run = open_run(folder)
        scenario = _to_resume(run, lockable, overrides)
        execution = Execution(scenario, folder, goes_on=True)
        sweep = run.info.get("sweep") or {}
        told: dict[str, Any] = {"sweep": sweep.get("name"), "label": sweep.get("label")}
        with showing(progress) as shown:
            observing = Observing(scenario, observers_of(scenario, [*shown.observers, *observers]), **told)
            where: dict[str, Any] = {"inline": inline, "local": local, "address": address}
            return launch(scenario, lambda: execution, **where, observing=observing)


def end(folder: str | Path) -> Result:
    """Declares a run over that was stopped, interrupted or killed, failed or diverged, and returns its result.

    Comparisons then count it with what it has, and sweeps and `resume=True` take it for done. It can still be resumed,
    and is then as before. folder: the run's, or its URI. Raises CannotGoOn if the run is finished, or under way.
    """
    folder = open_run(location(folder)).folder.resolve()  # raises NotARun
    with locked(folder) as lockable:
        run = open_run(folder)
        require_ended(run, lockable)
        if run.status in ("finished", "dry", "forking"):
            raise CannotGoOn(f"{folder}: must be a run that ended early, got one that is {run.status}")
        write_json(folder, {**json.loads((folder / "run.json").read_text()), "declared_over": now()})
    return Result(folder)


def scenario_to_resume(folder: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Returns the scenario with which the run in a folder would go on. Raises what `resume` does."""
    open_run(folder)  # raises NotARun
    with locked(folder) as lockable:
        return _to_resume(open_run(folder), lockable, overrides)


def _to_resume(run: Run, lockable: bool, overrides: Sequence[str]) -> Scenario:
    require_ended(run, lockable)
    require_no_links(run.folder)
    require_folder(run.folder)  # raises CannotWrite
    folder, info, source = run.folder, run.info, str(run.folder)
    if info.get("dry"):
        raise CannotGoOn(f"{folder}: must hold a run that has trained, got a dry run; run its scenario")
    before, after = changed(run, overrides)
    refuse(source, before, after, lambda key: key.startswith(LATER) and key not in BITS, "of a run that goes on")
    checkpoint = Checkpoint.read(folder)
    origin = info.get("forked_from")
    if "forking" in info or (origin and (checkpoint is None or checkpoint.version < origin["version"])):
        text = "must have a checkpoint from its version or later, because its past had other settings, got none"
        raise CannotGoOn(f"{folder}: this is a fork, which {text}; fork again")
    refuse_sooner(source, before.run, after.run, checkpoint)
    same = all(getattr(after.run, key) == getattr(before.run, key) for key in ("rounds", "until", "save_clients"))
    if info["status"] == "finished" and same:
        more = "time to go on, such as --set run.until.virtual_time=1000"
        more = more if after.run.rounds is None else "rounds to go on, such as --set run.rounds=1000"
        raise CannotGoOn(f"{folder}: the run is finished; give it more {more}")
    return after
