"""Runs that continue: a lock on a run's folder, checks before it is resumed or forked, and earlier runs of a
scenario."""

import fcntl
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from raysim.engine.checkpoint import Checkpoint
from raysim.parts.errors import CannotGoOn, Problem, ScenarioError
from raysim.runs.record import installed
from raysim.scenario import Scenario, parse_scenario
from raysim.scenario.dependencies import Dependencies, changes, depends_on
from raysim.scenario.load import override_all
from raysim.scenario.run_settings import TRAVELS, RunSettings, Until
from results import Run, open_run
from results.disk import require_folder
from results.info import state
from results.keys import Value, flatten
from results.location import is_local

# Keys with which a run may continue, because what it has written does not depend on them.
LATER = (
    *("run.rounds", "run.until", "run.save_clients", "run.checkpoint.", "run.log", "run.observers"),
    *("run.on_divergence", "resources."),
)
BITS = tuple(f"resources.{key}" for key in ("chunk", "shards", "threads"))  # on which bits depend


def require_ended(run: Run, lockable: bool) -> None:
    """Raises CannotGoOn if a run may be under way although its folder is not locked: on another machine, or on a file
    system without locks.
    """
    if lockable and state(run.info.get("holder")) != "unknown":
        return
    if run.standing in ("running", "forking"):
        cure = "wait for its end; if that process was killed, continue ten minutes after it last wrote"
        raise CannotGoOn(f"{run.folder}: must be a run that has ended, but is {run.standing}, {run.note}; {cure}")


def resumed(run: Run, lockable: bool, overrides: Sequence[str]) -> Scenario:
    """Returns the scenario with which a run would continue. lockable: whether its folder is locked. Raises what
    `raysim.resume` does."""
    require_ended(run, lockable)
    require_folder(run.folder)  # raises CannotWrite
    folder, info, source = run.folder, run.info, str(run.folder)
    if info.get("dry"):
        raise CannotGoOn(f"{folder}: must hold a run that has trained, got a dry run; run its scenario")
    before, after = changed(run, overrides)
    refuse(source, before, after, lambda key: key.startswith(LATER) and key not in BITS, "of a run that continues")
    checkpoint = Checkpoint.read(folder)
    origin = info.get("forked_from")
    if "forking" in info or (origin and (checkpoint is None or checkpoint.version < origin["version"])):
        text = "must have a checkpoint from its version or later, because its past had other settings, got none"
        raise CannotGoOn(f"{folder}: this is a fork, which {text}; fork again")
    _refuse_sooner(source, before.run, after.run)
    same = all(getattr(after.run, key) == getattr(before.run, key) for key in ("rounds", "until", "save_clients"))
    if not same and before.release is not None and before.release.follows_length:
        text = "must not get another end where release's noise depends on how long the run is; run the scenario again"
        raise CannotGoOn(f"{folder}: the run {text}")
    if info["status"] == "finished" and same:
        more = "time to continue, such as --set run.until.virtual_time=1000"
        more = more if after.run.rounds is None else "rounds to continue, such as --set run.rounds=1000"
        raise CannotGoOn(f"{folder}: the run is finished; give it more {more}")
    return after


def changed(run: Run, overrides: Sequence[str]) -> tuple[Scenario, Scenario]:
    """Returns the scenario of a run before and after its keys are changed.

    Raises ScenarioError for wrong ones, and CannotGoOn if run.json does not hold the scenario that was run.
    """
    source, info = str(run.folder), run.info
    if "scenario" not in info:
        text = "must hold the scenario that was run, and holds none"
        raise CannotGoOn(f"{run.folder / 'run.json'}: {text}; copy it again from where it is whole")
    before = parse_scenario(info["scenario"], source)
    same_version = (info.get("versions") or {}).get("raysim") == installed("raysim")  # another one may have other keys
    if same_version and info.get("scenario_hash") not in (None, before.hash):
        text = "scenario: must be the one that was run, but has changed since"
        raise CannotGoOn(f"{run.folder / 'run.json'}: {text}; undo the change, and give other values with --set")
    raw = before.resolved()
    if problems := override_all(raw, overrides):
        raise ScenarioError(source, problems)
    return before, parse_scenario(raw, source)


def differences(before: Scenario, after: Scenario) -> dict[str, tuple[Value, Value]]:
    """Returns the values before and after of all keys that differ, by dotted path."""
    old, new = flatten(before.resolved()), flatten(after.resolved())
    both = {key: (old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())}
    return {key: values for key, values in both.items() if values[0] != values[1]}


def _refuse_sooner(source: str, before: RunSettings, after: RunSettings) -> None:
    """Raises ScenarioError if a run would end sooner than it was to, because that would delete what it has done."""
    wanted, limits = _limits(before), _limits(after)
    problems = []
    for key, limit in limits.items():
        if limit < wanted[key]:
            bound, sign = ("at most", -1) if key.endswith("at_most") else ("at least", 1)
            old = "null" if wanted[key] == math.inf else f"{bound} {wanted[key] * sign:g}"
            text = f"must be {old}, as the run was to have, got {limit * sign:g}; take that, or run the scenario again"
            problems.append(Problem(f"run.{key}", text))
    metrics = [run.until.metric if run.until else None for run in (before, after)]
    if None not in metrics and metrics[0] != metrics[1]:
        text = f"must stay {metrics[0]!r}, got {metrics[1]!r}; run the scenario again"
        problems.append(Problem("run.until.metric", text))
    if problems:
        raise ScenarioError(source, problems)


def _limits(run: RunSettings) -> dict[str, float]:
    """Returns what ends a run, by key in the block `run`: it continues while it is below all of them."""
    until = run.until or Until.model_construct()
    keys = ("virtual_time", "updates", *TRAVELS, "flops", "at_least", "patience")
    found = {"rounds": run.rounds, **{f"until.{key}": getattr(until, key) for key in keys}}
    found["until.at_most"] = None if until.at_most is None else -until.at_most
    return {key: math.inf if value is None else value for key, value in found.items()}


def refuse(source: str, before: Scenario, after: Scenario, allowed: Callable[[str], bool], whose: str) -> None:
    """Raises ScenarioError if a key has changed that must not, mostly because rows that are written already would be
    different. Of a block that is another one, it tells the name or the schedule, and not all keys."""
    problems = []
    changed = differences(before, after)
    for key, (old, new) in changed.items():
        block = key.rpartition(".")[0]
        if not allowed(key) and block not in changed and (key == f"{block}.name" or f"{block}.name" not in changed):
            why = "because its folder is named after it" if key == "name" else "because the past depends on it"
            problems.append(Problem(key, f"must stay {old!r} {whose}, {why}, got {new!r}"))
    if problems:
        raise ScenarioError(source, problems)


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[bool]:
    """Within the block, this process alone writes a run into the folder; shared: it only reads, and nobody writes.

    Yields False where there are no locks, as on object stores: run.json then says which process writes the run. The
    system releases the lock of a process that was killed. Raises CannotGoOn if another process holds the lock.
    """
    if not is_local(folder):
        yield False
        return
    handle, lockable = os.open(folder, os.O_RDONLY), True
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            cure = "wait for its end, or end it (`raysim show` names it)"
            text = f"{folder}: must be a run that has ended, but a process is at work on it; {cure}"
            raise CannotGoOn(text) from None
        except OSError:
            lockable = False
        yield lockable
    finally:
        os.close(handle)


def _is_over(run: Run) -> bool:
    return run.over or run.status == "diverged"


class OutOfDate(NamedTuple):
    """The reason why a scenario that has been run before is run again."""

    folder: Path  # folder of the earlier run
    why: str  # the dependencies that have changed since


@contextmanager
def going_on(folder: Path | None, scenario: Scenario) -> Iterator[None]:
    """Within the block, this process may resume a run that ended early, and no other process writes into its folder.

    folder: None for a new run, which nobody else knows. Raises CannotGoOn if another process does, or did since the run
    was found.
    """
    if folder is None:
        yield
        return
    with locked(folder):
        run = open_run(folder)
        if _is_over(run) or run.info.get("scenario_hash") != scenario.hash:
            text = f"must be a run that ended early, but another process continued it, and it is {run.standing} now"
            raise CannotGoOn(f"{folder}: {text}; run the scenario again to use it")
        yield


class EarlierRuns:
    """The last run of each scenario below a folder that is over, and the last one that ended early.

    A run is over if it finished or diverged, because it would end in the same way again. It ended early if it was
    interrupted, killed or stopped, or failed.
    """

    def __init__(self, out: Path) -> None:
        self._over: dict[str, tuple[Path, Dependencies]] = {}
        self._early: dict[str, tuple[Path | None, Dependencies]] = {}
        for run in sorted(_ended(out), key=lambda run: (run.info.get("started_at") or "", run.folder)):
            found = self._over if _is_over(run) else self._early
            found[str(run.info["scenario_hash"])] = run.folder, run.info.get("depends_on") or {}

    def find(self, scenario: Scenario) -> Path | OutOfDate | None:
        """Returns the folder of the scenario's run that is over, or the reason why it is out of date; None if there
        is no such run."""
        if scenario.hash not in self._over:
            return None
        folder, before = self._over[scenario.hash]
        changed = ", ".join(changes(before, depends_on(scenario)))
        return OutOfDate(folder, changed) if changed else folder

    def to_resume(self, scenario: Scenario) -> Path | None:
        """Returns the folder of the scenario's run that ended early; None if there is none, or it is out of date.

        Each folder is returned to one caller only, so that no two runs write there. Many threads may call it.
        """
        folder, before = self._early.pop(scenario.hash, (None, {}))
        return None if folder is None or any(changes(before, depends_on(scenario))) else folder


def _ended(out: Path) -> Iterator[Run]:
    """Yields the runs below a folder that are over or ended early, but no fork, whose past had other settings, and no
    dry run, which has none. What cannot be read is left out."""
    for file in sorted(out.rglob("run.json")):
        with suppress(OSError, TypeError, ValueError, AttributeError):  # such as one that is deleted meanwhile
            run = open_run(file.parent)
            own = "scenario_hash" in run.info and not (run.info.get("forked_from") or run.info.get("dry"))
            if own and (_is_over(run) or run.standing in ("interrupted", "killed", "stopped", "failed")):
                yield run
