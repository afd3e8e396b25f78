"""Checks before a run is resumed or forked: it must have ended, and only some keys may change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from raysim.parts.errors import CannotGoOn, Problem, ScenarioError
from raysim.runs.folder import installed
from raysim.scenario import Scenario, parse_scenario
from raysim.scenario.yaml import override_all
from results import Run
from results.keys import Value, flatten
from results.location import is_local
from results.writing_process import state

# Keys with which a run may go on, because what it has written does not depend on them.
LATER = (
    *("run.rounds", "run.save_clients", "run.checkpoint.", "run.log", "run.observers", "run.on_divergence"),
    "resources.",
)
BITS = tuple(f"resources.{key}" for key in ("chunk", "shards", "threads"))  # on which bits depend


def require_ended(run: Run, lockable: bool) -> None:
    """Raises CannotGoOn if a run may be under way although its folder is not locked: on another machine, or on a file
    system without locks.
    """
    if lockable and state(run.info.get("holder")) != "unknown":
        return
    if run.standing in ("running", "forking"):
        cure = "wait for its end; if that process was killed, go on ten minutes after it last wrote"
        raise CannotGoOn(f"{run.folder}: must be a run that has ended, but is {run.standing}, {run.note}; {cure}")


def require_no_links(folder: Path) -> None:
    """Raises CannotGoOn if a run's folder holds links, because files written there could land elsewhere."""
    for place, folders, files in os.walk(folder) if is_local(folder) else ():
        for name in (*folders, *files):
            if (link := Path(place, name)).is_symlink():
                text = f"must hold no links where a run goes on, because they may lead anywhere, got {link.name}"
                raise CannotGoOn(f"{link.parent}: {text}; put what it leads to in its place, or delete it")


def changed(run: Run, overrides: Sequence[str]) -> tuple[Scenario, Scenario]:
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


def differences(before: Scenario, after: Scenario) -> dict[str, tuple[Value, Value]]:
    """Returns the values before and after of all keys that differ, by dotted path."""
    old, new = flatten(before.resolved()), flatten(after.resolved())
    both = {key: (old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys())}
    return {key: values for key, values in both.items() if values[0] != values[1]}


def refuse(source: str, before: Scenario, after: Scenario, allowed: Callable[[str], bool], whose: str) -> None:
    """Raises ScenarioError if a key has changed that must not, mostly because rows that are written already would be
    different."""
    past = "because the past depends on it"
    why = {"name": "because its folder is named after it"}
    problems = [
        Problem(key, f"must stay {old!r} {whose}, {why.get(key, past)}, got {new!r}")
        for key, (old, new) in differences(before, after).items()
        if not allowed(key)
    ]
    if problems:
        raise ScenarioError(source, problems)
