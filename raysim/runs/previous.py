"""A lock on a run's folder, so that one process at a time writes there; and earlier runs of a scenario in a folder, to
return their results or to resume them."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from raysim.parts.errors import CannotGoOn
from raysim.scenario import Scenario
from raysim.scenario.dependencies import Dependencies, changes, depends_on
from results import Run, open_run
from results.location import is_local


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[bool]:
    """Within the block, this process alone writes a run into the folder; shared: it only reads, and nobody writes.

    Yields False where there are no locks, as on object stores: run.json then says which process writes the run. The
    system releases the lock of a process that was killed. Raises CannotGoOn if another process holds the lock.
    """
    if not is_local(folder):
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield _lock(handle, folder, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        cure = "wait for its end, or end it (`raysim show` names it)"
        text = f"{folder}: must be a run that has ended, but a process is at work on it; {cure}"
        raise CannotGoOn(text) from None
    except OSError:
        return False
    return True


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
