"""Goes on with runs from Python: `resume` and `fork` are what `raysim.resume` and `raysim.fork` name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from raysim.engine.checkpoint import FOLDER, Checkpoint
from raysim.engine.execution import Execution
from raysim.engine.progress import Progress
from raysim.errors import CannotGoOn, Problem, RunFailed, ScenarioError
from raysim.result import Result
from raysim.runner import launch, new_folder
from raysim.scenario import Scenario, parse_scenario
from raysim.scenario.yaml import override
from results import open_run
from results.keys import flatten
from results.schemas import TABLES

# Keys with which a run may go on, because what it has written does not depend on them.
_LATER = ("run.rounds", "run.save_clients", "run.checkpoint.", "run.on_divergence", "resources.")
_BITS = ("resources.chunk", "resources.shards", "resources.threads")  # on which bits depend
# Keys that a fork may change: from its version on, they change what happens, but not who is picked when.
_FORKED = (*_LATER, "algorithm.", "local.", "run.", "name")


def resume(
    folder: str | Path,
    overrides: Sequence[str] = (),
    *,
    inline: bool = False,
    address: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Goes on with a run that ended early, or with a finished one for more rounds, and returns its result.

    It goes on from the run's checkpoint, or from the beginning if it has none. Model, tables and digest are those of a
    run that was never interrupted, on any number of workers.

    folder: the run's. overrides: keys to change, such as "run.rounds=1000" or "resources.client_actors=4". For the
    other arguments, see `run`. Raises CannotGoOn if the folder holds nothing to go on with; ScenarioError if a key
    would change what the run has written already; DamagedCheckpoint if a file of the checkpoint is damaged.
    """
    folder = Path(folder).resolve()
    scenario = scenario_to_resume(folder, overrides)
    execution = Execution(scenario, folder, goes_on=True)
    return launch(scenario, lambda: execution, inline=inline, address=address, progress=progress)


def scenario_to_resume(folder: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Returns the scenario with which the run in a folder would go on. Raises what `resume` does."""
    info = open_run(folder).info
    source = str(folder)
    before, after = _changed(info["scenario"], overrides, source)
    _refuse(source, before, after, lambda key: key.startswith(_LATER) and key not in _BITS, "of a run that goes on")
    checkpoint = Checkpoint.read(folder)
    if info["status"] in ("dry", "forking"):
        why = {"dry": "a dry run trains nothing", "forking": "this fork has not come to its version; fork again"}
        raise CannotGoOn(f"{folder}: must hold a run that has trained, got the status {info['status']}: {why}")
    if checkpoint and after.run.rounds <= checkpoint.round:
        text = f"must be more than {checkpoint.round}, the rounds that the run has done, got {after.run.rounds}"
        raise ScenarioError(source, [Problem("run.rounds", f"{text}; take more, or run the scenario anew")])
    if info["status"] == "finished" and (after.run.rounds, after.run.save_clients) == (
        before.run.rounds,
        before.run.save_clients,
    ):
        raise CannotGoOn(f"{folder}: the run is finished; give it more rounds to go on, such as --set run.rounds=1000")
    return after


def fork(
    folder: str | Path,
    at: int,
    overrides: Sequence[str] = (),
    *,
    out: str | Path = "runs",
    inline: bool = False,
    address: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Starts a new run from a version of another one, with other settings from there on, and returns its result.

    Who is picked, how late, and with which samples stays as in the other run. If that has no checkpoint from before the
    version, the new run first does again what the other one did until there.

    at: the number of server steps, or of rounds of peers, after which the settings change. Updates that later steps use
    are trained with the new settings, even if they were dispatched before. Peers have trained with the old settings for
    their next mix.
    overrides: the keys that change, in the blocks algorithm, local and run. For the other arguments, see `run`.
    Raises what `resume` does.
    """
    source = Path(folder).resolve()
    before, after = scenario_to_fork(source, at, overrides)
    # Until its version, the fork is the old run, for as many rounds as the new one has: what peers do depends on that.
    old = before.model_copy(update={"run": before.run.model_copy(update={"rounds": after.run.rounds})})
    facts = {"forked_from": {"run": open_run(source).id, "version": at}}
    made: list[Path] = []

    def first() -> Execution:
        made.append(new_folder(Path(out), after.name))
        goes_on = _copy(source, made[0], at)
        return Execution(old, made[0], goes_on=goes_on, until=at, facts=facts)

    where: dict[str, Any] = {"inline": inline, "address": address, "progress": progress}
    launch(old, first, **where)
    checkpoint = Checkpoint.read(made[0])
    if checkpoint is None or checkpoint.version != at:
        came = checkpoint.version if checkpoint else 0
        raise RunFailed("fork", f"the run must come to version {at} before its end is near, but came to {came}")
    return launch(after, lambda: Execution(after, made[0], goes_on=True, facts=facts), **where)


def scenario_to_fork(folder: Path, at: int, overrides: Sequence[str]) -> tuple[Scenario, Scenario]:
    """Returns the scenario of the run in a folder, and that of its fork. Raises what `fork` does."""
    source = str(folder)
    before, after = _changed(open_run(folder).info["scenario"], overrides, source)
    _refuse(source, before, after, lambda key: key.startswith(_FORKED) and key not in _BITS, "of a fork")
    if before.algorithm.name != after.algorithm.name:
        text = f"must stay {before.algorithm.name!r}, whose state the fork starts with, got {after.algorithm.name!r}"
        raise ScenarioError(source, [Problem("algorithm.name", text)])
    _refuse_other_arrivals(source, before, after)
    if not 1 <= at < after.run.rounds:
        raise CannotGoOn(f"--at: must be from 1 to {after.run.rounds - 1}, one less than run.rounds, got {at}")
    return before, after


def _refuse_other_arrivals(source: str, before: Scenario, after: Scenario) -> None:
    """Raises ScenarioError if the settings of a fork would change when updates arrived or were used in the past."""
    problems = []
    if before.has_server and before.central.trigger != after.central.trigger:
        text = f"must not change when the server steps, got {after.central.trigger} instead of {before.central.trigger}"
        problems.append(Problem("algorithm", f"{text}; run the scenario anew"))
    if before.needs_cost and _works(before) != _works(after):
        text = "must not change how many samples clients compute, because delays depend on that; run the scenario anew"
        problems.append(Problem("local", text))
    if problems:
        raise ScenarioError(source, problems)


def _works(scenario: Scenario) -> list[int]:
    """Returns how many samples clients with 1, 10, 100 and 1000 samples compute in local training."""
    if scenario.has_server:
        return [scenario.central.samples_seen(scenario.local, samples) for samples in (1, 10, 100, 1000)]
    return [scenario.local.total_samples(samples) for samples in (1, 10, 100, 1000)]


def _copy(source: Path, target: Path, at: int) -> bool:
    """Copies a run's checkpoint and tables if it was made before the version `at`. Returns whether it was."""
    checkpoint = Checkpoint.read(source)
    if checkpoint is None or checkpoint.version >= at:
        return False
    for name in (*TABLES, FOLDER):
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
    return True


def _changed(resolved: dict[str, Any], overrides: Sequence[str], source: str) -> tuple[Scenario, Scenario]:
    """Returns the scenario of a run before and after its keys are changed. Raises ScenarioError for wrong ones."""
    before = parse_scenario(resolved, source)
    raw = before.resolved()
    if problems := [problem for text in overrides if (problem := override(raw, text))]:
        raise ScenarioError(source, problems)
    return before, parse_scenario(raw, source)


def _refuse(source: str, before: Scenario, after: Scenario, allowed: Callable[[str], bool], whose: str) -> None:
    """Raises ScenarioError if a key has changed that must not, because it would change what was written before."""
    old, new = flatten(before.resolved()), flatten(after.resolved())
    changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    problems = [
        Problem(key, f"must stay {old.get(key)!r} {whose}, because the past depends on it, got {new.get(key)!r}")
        for key in changed
        if not allowed(key)
    ]
    if problems:
        raise ScenarioError(source, problems)
