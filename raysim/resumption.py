"""Goes on with runs from Python: `resume` and `fork` are what `raysim.resume` and `raysim.fork` name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from raysim.engine.checkpoint import FOLDER, Checkpoint
from raysim.engine.execution import Execution
from raysim.engine.folder import installed
from raysim.engine.lock import locked
from raysim.engine.progress import Progress
from raysim.errors import CannotGoOn, Problem, ScenarioError
from raysim.result import Result
from raysim.runner import launch, new_folder
from raysim.scenario import Scenario, parse_scenario
from raysim.scenario.yaml import override_all
from results import Run, open_run, this_process, write_json
from results.disk import writing
from results.holder import state
from results.keys import Value, flatten
from results.location import location
from results.parts import OtherFile, require_no_others
from results.schemas import TABLES
from results.store import copy_folder

# Keys with which a run may go on, because what it has written does not depend on them.
_LATER = ("run.rounds", "run.save_clients", "run.checkpoint.", "run.on_divergence", "resources.")
_BITS = tuple(f"resources.{key}" for key in ("chunk", "shards", "threads", "vectorize"))  # on which bits depend
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

    folder: the run's, or its URI. overrides: keys to change, such as "run.rounds=1000" or "resources.client_actors=4".
    For the other arguments, see `run`. Raises CannotGoOn if the folder holds nothing to go on with; ScenarioError if a
    key would change what the run has written already; DamagedCheckpoint if a file of the checkpoint is damaged.
    """
    folder = location(folder).resolve()
    open_run(folder)  # raises NotARun
    with locked(folder) as lockable:
        scenario = _to_resume(open_run(folder), lockable, overrides)
        execution = Execution(scenario, folder, goes_on=True)
        return launch(scenario, lambda: execution, inline=inline, address=address, progress=progress)


def scenario_to_resume(folder: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Returns the scenario with which the run in a folder would go on. Raises what `resume` does."""
    open_run(folder)  # raises NotARun
    with locked(folder) as lockable:
        return _to_resume(open_run(folder), lockable, overrides)


def _to_resume(run: Run, lockable: bool, overrides: Sequence[str]) -> Scenario:
    _require_ended(run, lockable)
    folder, info, source = run.folder, run.info, str(run.folder)
    if info.get("dry"):
        raise CannotGoOn(f"{folder}: must hold a run that has trained, got a dry run; run its scenario")
    before, after = _changed(run, overrides)
    _refuse(source, before, after, lambda key: key.startswith(_LATER) and key not in _BITS, "of a run that goes on")
    checkpoint = Checkpoint.read(folder)
    origin = info.get("forked_from")
    if "forking" in info or (origin and (checkpoint is None or checkpoint.version < origin["version"])):
        text = "must have a checkpoint from its version or later, because its past had other settings, got none"
        raise CannotGoOn(f"{folder}: this is a fork, which {text}; fork again")
    if after.run.rounds < before.run.rounds:
        text = f"must be at least {before.run.rounds}, as many as the run was to have, got {after.run.rounds}"
        raise ScenarioError(source, [Problem("run.rounds", f"{text}; take more, or run the scenario anew")])
    try:
        for table in TABLES:
            require_no_others(folder, table)
    except OtherFile as error:
        raise CannotGoOn(str(error)) from None
    if info["status"] == "finished" and (after.run.rounds, after.run.save_clients) == (
        before.run.rounds,
        before.run.save_clients,
    ):
        raise CannotGoOn(f"{folder}: the run is finished; give it more rounds to go on, such as --set run.rounds=1000")
    return after


def _require_ended(run: Run, lockable: bool) -> None:
    """Raises CannotGoOn if a run may be under way where the lock of its folder does not tell.

    That is on another machine, or on a file system without locks.
    """
    if lockable and state(run.info.get("holder")) != "unknown":
        return
    if run.standing in ("running", "forking"):
        cure = "wait for its end; if that process was killed, go on ten minutes after it last wrote"
        raise CannotGoOn(f"{run.folder}: must be a run that has ended, but is {run.standing}, {run.note}; {cure}")


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
    source = location(folder).resolve()
    before, after = scenario_to_fork(source, at, overrides)
    # Until its version, the fork is the old run, for as many rounds as the new one has: what peers do depends on that.
    old = before.model_copy(update={"run": before.run.model_copy(update={"rounds": after.run.rounds})})
    origin = _origin(open_run(source), at, before, after)
    made: list[Path] = []

    def first() -> Execution:
        made.append(new_folder(location(out), after.name))
        with locked(source, shared=True):
            goes_on = _copy(source, made[0], at, origin)
        return Execution(old, made[0], goes_on=goes_on, until=at, facts={"forking": origin})

    where: dict[str, Any] = {"inline": inline, "address": address, "progress": progress}
    past = launch(old, first, **where)
    if past.info["status"] != "forking":  # it was stopped before, or has diverged
        return past
    facts = {"forked_from": origin}
    with locked(made[0]):
        return launch(after, lambda: Execution(after, made[0], goes_on=True, facts=facts), **where)


def _origin(run: Run, at: int, before: Scenario, after: Scenario) -> dict[str, Any]:
    """Returns what run.json says of where a fork is from: the run, the version, and the settings that it had before.

    If that run is a fork, too, it also says where that one is from.
    """
    changed = _differences(before, after)
    settings = {key: old for key, (old, _) in changed.items() if not key.startswith((*_LATER, "name"))}
    origin = {"run": run.id, "version": at, "before": settings}
    return {**origin, "forked_from": run.info["forked_from"]} if run.info.get("forked_from") else origin


def scenario_to_fork(folder: Path, at: int, overrides: Sequence[str]) -> tuple[Scenario, Scenario]:
    """Returns the scenario of the run in a folder, and that of its fork. Raises what `fork` does."""
    run = open_run(folder)
    with locked(folder, shared=True) as lockable:
        _require_ended(run, lockable)
    source = str(folder)
    before, after = _changed(run, overrides)
    _refuse(source, before, after, lambda key: key.startswith(_FORKED) and key not in _BITS, "of a fork")
    if before.algorithm.name != after.algorithm.name:
        text = f"must stay {before.algorithm.name!r}, whose state the fork starts with, got {after.algorithm.name!r}"
        raise ScenarioError(source, [Problem("algorithm.name", text)])
    _refuse_another_past(source, before, after)
    last, which = after.run.rounds - 1, "one less than run.rounds"
    if run.status == "finished" and after.run.rounds <= before.run.rounds and run.info["totals"]["steps"] < last:
        last, which = run.info["totals"]["steps"], "the run's last step"
    if not 1 <= at <= last:
        raise CannotGoOn(f"--at: must be from 1 to {last}, {which}, got {at}")
    _require_past(run, at)
    return before, after


def _require_past(run: Run, at: int) -> None:
    """Raises CannotGoOn if a run is a fork itself, and its past until the version `at` would have to be done again."""
    origin = run.info.get("forking") or run.info.get("forked_from")
    if not origin:
        return
    checkpoint = Checkpoint.read(run.folder)
    if "forking" in run.info or checkpoint is None or not origin["version"] <= checkpoint.version < at:
        have = f"one from version {checkpoint.version}" if checkpoint else "none"
        raise CannotGoOn(
            f"{run.folder}: this is a fork, whose past had other settings, so it must have a checkpoint from version "
            f"{origin['version']} or later, and from before version {at}, got {have}; fork the run {origin['run']}"
        )


def _refuse_another_past(source: str, before: Scenario, after: Scenario) -> None:
    """Raises ScenarioError if the settings of a fork would change what happened in the past, or need more of it."""
    problems = []
    if before.has_server and before.central.trigger != after.central.trigger:
        text = f"must not change when the server steps, got {after.central.trigger} instead of {before.central.trigger}"
        problems.append(Problem("algorithm", f"{text}; run the scenario anew"))
    if not before.has_server and not before.world.synchronous:
        problems += _other_evaluations(before, after)
    if before.needs_cost and _works(before) != _works(after):
        text = "must not change how many samples clients compute, because delays depend on that; run the scenario anew"
        problems.append(Problem("local", text))
    if problems:
        raise ScenarioError(source, problems)


def _other_evaluations(before: Scenario, after: Scenario) -> Iterator[Problem]:
    """Yields a problem for each key that would add an evaluation to a run of peers that do not wait for each other.

    Only those states of peers are kept that the evaluations of the past run need.
    """
    why = "because peers that do not wait keep only the states that are evaluated; run the scenario anew"
    if before.run.evaluate_every != after.run.evaluate_every:
        text = f"must stay {before.run.evaluate_every} of a fork, got {after.run.evaluate_every}, {why}"
        yield Problem("run.evaluate_every", text)
    if after.run.rounds < before.run.rounds:
        text = f"must be at least {before.run.rounds} of a fork, got {after.run.rounds}, {why}"
        yield Problem("run.rounds", text)


def _works(scenario: Scenario) -> list[int]:
    """Returns how many samples clients with 1 to 2000 samples compute in local training."""
    if scenario.has_server:
        return [scenario.central.samples_seen(scenario.local, samples) for samples in range(1, 2001)]
    return [scenario.local.total_samples(samples) for samples in range(1, 2001)]


def _copy(source: Path, target: Path, at: int, origin: dict[str, Any]) -> bool:
    """Copies a run's checkpoint and tables if it was made before the version `at`. Returns whether it was.

    origin: what run.json says of where the copy is from, until the fork has come to its version.
    """
    checkpoint = Checkpoint.read(source)
    if checkpoint is None or checkpoint.version >= at:
        return False
    about = {"run": target.name, "status": "forking", "forking": origin, "holder": this_process(), "resumed": []}
    write_json(target, open_run(source).info | about)  # first, so that a half copy is never taken for the run
    for name in (*TABLES, FOLDER):
        if (source / name).is_dir():
            with writing(target / name):
                copy_folder(source / name, target / name)
    return True


def _changed(run: Run, overrides: Sequence[str]) -> tuple[Scenario, Scenario]:
    """Returns the scenario of a run before and after its keys are changed.

    Raises ScenarioError for wrong ones, and CannotGoOn if run.json does not hold the scenario that was run.
    """
    source, info = str(run.folder), run.info
    before = parse_scenario(info["scenario"], source)
    same_version = (info.get("versions") or {}).get("raysim") == installed("raysim")  # another one may have other keys
    if same_version and info.get("scenario_hash") not in (None, before.hash):
        text = "scenario: must be the one that was run, but has changed since"
        raise CannotGoOn(f"{run.folder / 'run.json'}: {text}; undo the change, and give other values with --set")
    raw = before.resolved()
    if problems := override_all(raw, overrides):
        raise ScenarioError(source, problems)
    return before, parse_scenario(raw, source)


def _differences(before: Scenario, after: Scenario) -> dict[str, tuple[Value, Value]]:
    """Returns the values before and after of all keys that differ, by dotted path."""
    old, new = flatten(before.resolved()), flatten(after.resolved())
    both = {key: (old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())}
    return {key: values for key, values in both.items() if values[0] != values[1]}


def _refuse(source: str, before: Scenario, after: Scenario, allowed: Callable[[str], bool], whose: str) -> None:
    """Raises ScenarioError if a key has changed that must not, mostly as it would change what was written before."""
    past = "because the past depends on it"
    why = {"name": "because its folder is named after it"}
    problems = [
        Problem(key, f"must stay {old!r} {whose}, {why.get(key, past)}, got {new!r}")
        for key, (old, new) in _differences(before, after).items()
        if not allowed(key)
    ]
    if problems:
        raise ScenarioError(source, problems)
