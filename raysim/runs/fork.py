"""Forks: runs that start from a version of another run. `fork` is available as `raysim.fork`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from raysim.engine.checkpoint import FOLDER, Checkpoint
from raysim.observers.observer import Watcher
from raysim.parts.errors import CannotGoOn, Problem, ScenarioError
from raysim.runs.continuing import BITS, LATER, changed, differences, locked, refuse, require_ended
from raysim.runs.execution import Execution
from raysim.runs.launch import launch, new_folder
from raysim.runs.observing import watching
from raysim.runs.place import RunPlace
from raysim.runs.record import RunRecord
from raysim.runs.result import Result
from raysim.scenario import Scenario
from raysim.scenario.peer_checks import MOST_ROUNDS
from results import Run, open_run, this_process
from results.disk import writing
from results.info import Status
from results.location import copy_folder, location
from results.schemas import TABLES

# Keys that a fork may change, because they do not change who is picked when.
_FORKED = (*LATER, "algorithm.", "local.", "run.", "name")


def fork(
    folder: str | Path,
    at: int,
    overrides: Sequence[str] = (),
    *,
    out: str | Path = "runs",
    inline: bool = False,
    local: int | None = None,
    address: str | None = None,
    observers: Sequence[Watcher] = (),
    progress: bool = True,
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
    place = RunPlace(inline, local, address)
    source = open_run(location(folder)).folder.resolve()
    before, after = scenario_to_fork(source, at, overrides)
    # Until its version, the fork is the old run, for as many rounds as the new one has: what peers do depends on that.
    length = {"rounds": after.run.rounds, "until": after.run.until}
    old = before.model_copy(update={"run": before.run.model_copy(update=length)})
    origin = _origin(open_run(source), at, before, after)

    def first() -> Execution:
        made = new_folder(location(out), after.name)
        with locked(source, shared=True):
            goes_on = _copy(source, made, at, origin)
            past = None if goes_on else RunRecord.read(source)
        return Execution(old, made, goes_on=goes_on, until=at, facts={"forking": origin}, past=past)

    with watching(after, observers, progress) as observing:
        past = launch(old, first, place, observing)
        if past.info["status"] != "forking":  # it was stopped before, or has diverged
            return past
        second = Execution(after, past.folder, goes_on=True, facts={"forked_from": origin})
        with locked(past.folder):
            return launch(after, lambda: second, place, observing)


def scenario_to_fork(folder: Path, at: int, overrides: Sequence[str]) -> tuple[Scenario, Scenario]:
    """Returns the scenario of the run in a folder, and that of its fork. Raises what `fork` does."""
    run = open_run(folder)
    with locked(folder, shared=True) as lockable:
        require_ended(run, lockable)
    source = str(folder)
    before, after = changed(run, overrides)
    refuse(source, before, after, lambda key: key.startswith(_FORKED) and key not in BITS, "of a fork")
    if before.algorithm.name != after.algorithm.name:
        text = f"must stay {before.algorithm.name!r}, whose state the fork starts with, got {after.algorithm.name!r}"
        raise ScenarioError(source, [Problem("algorithm.name", text)])
    _refuse_another_past(source, before, after)
    _refuse_another_guarantee(source, before, after)
    most = MOST_ROUNDS if after.run.rounds is None else after.run.rounds
    last, which = most - 1, "one less than run.rounds"
    longer = before.run.rounds is not None and most > before.run.rounds
    if run.status == "finished" and not longer and (steps := (run.info.get("totals") or {}).get("steps", 0)) < last:
        last, which = steps, "the run's last step"
    if not 1 <= at <= last:
        raise CannotGoOn(f"--at: must be from 1 to {last}, {which}, got {at}")
    _require_past(run, at)
    return before, after


def _refuse_another_guarantee(source: str, before: Scenario, after: Scenario) -> None:
    """Raises CannotGoOn if steps before the version would have had other noise, or count for other uses of clients."""
    noise = after.release is not None and after.release.follows_length
    if noise or (after.privacy is not None and before.algorithm != after.algorithm):
        text = "must keep the settings of its algorithm, and noise that does not depend on how long it is, to be forked"
        raise CannotGoOn(f"{source}: a run with `{'release' if noise else 'privacy'}` {text}; run the scenario again")


def _require_past(run: Run, at: int) -> None:
    """Raises CannotGoOn if the run is a fork itself and would have to be done again up to the version `at`."""
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
    """Raises ScenarioError if the settings of a fork would change what happened before its version, or need records
    that the run did not keep."""
    problems = []
    if before.has_server and before.central.trigger != after.central.trigger:
        text = f"must not change when the server steps, got {after.central.trigger} instead of {before.central.trigger}"
        problems.append(Problem("algorithm", f"{text}; run the scenario again"))
    if not before.has_server and not before.world.synchronous:
        problems += _other_evaluations(before, after)
    if before.world.delay.needs_cost and _works(before) != _works(after):
        text = "must not change how many samples clients compute, because delays depend on that; run the scenario again"
        problems.append(Problem("local", text))
    if problems:
        raise ScenarioError(source, problems)


def _other_evaluations(before: Scenario, after: Scenario) -> Iterator[Problem]:
    """Yields a problem for each key that would add an evaluation to a run of peers that do not wait for each other.

    Only those states of peers are kept that the evaluations of the past run need.
    """
    why = "because peers that do not wait keep only the states that are evaluated; run the scenario again"
    if before.run.evaluate_every != after.run.evaluate_every:
        text = f"must stay {before.run.evaluate_every} of a fork, got {after.run.evaluate_every}, {why}"
        yield Problem("run.evaluate_every", text)
    for key, wanted, got in (
        ("rounds", before.run.horizon.rounds, after.run.horizon.rounds),
        ("until.virtual_time", before.run.horizon.time, after.run.horizon.time),
        ("until.updates", before.run.horizon.updates, after.run.horizon.updates),
    ):
        if got < wanted:
            yield Problem(f"run.{key}", f"must be at least {wanted:g} of a fork, got {got:g}, {why}")


def _works(scenario: Scenario) -> list[int]:
    """Returns how many samples clients or peers with 1 to 2000 samples compute in local training."""
    trained = [scenario.local, *(group.settings(scenario.local) for group in scenario.clients)]
    sizes = [(local, samples) for local in trained for samples in range(1, 2001)]
    seen = [scenario.algorithm.samples_seen(local, samples) for local, samples in sizes]
    if scenario.has_server:
        return seen
    # Peers may also train in `mix`, with the settings of `local:`.
    return seen + [local.total_samples(samples) for local, samples in sizes]


def _origin(run: Run, at: int, before: Scenario, after: Scenario) -> dict[str, Any]:
    """Returns the origin of a fork for run.json: the run, the version, and the settings before.

    If that run is a fork, too, its own origin is included.
    """
    old = {key: values[0] for key, values in differences(before, after).items()}
    settings = {key: value for key, value in old.items() if not key.startswith((*LATER, "name"))}
    origin = {"run": run.id, "version": at, "before": settings}
    return {**origin, "forked_from": run.info["forked_from"]} if run.info.get("forked_from") else origin


def _copy(source: Path, target: Path, at: int, origin: dict[str, Any]) -> bool:
    """Copies a run's checkpoint and tables if it was made before the version `at`. Returns whether it was.

    origin: what run.json says of where the copy is from, until the fork has come to its version.
    """
    checkpoint, record = Checkpoint.read(source), RunRecord.read(source)
    if record is None or checkpoint is None or checkpoint.version >= at:
        return False
    holder = this_process()
    copied = replace(record, run=target.name, status=Status.FORKING, forking=origin, holder=holder, resumed=[])
    copied.write(target)  # first, so that a half copy is never taken for the run
    for name in (*TABLES, FOLDER):
        if (source / name).is_dir():
            with writing(target / name):
                copy_folder(source / name, target / name)
    return True
