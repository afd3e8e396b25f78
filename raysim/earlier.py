"""Finds the runs of a scenario that are in a folder already."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from raysim.scenario import Scenario
from raysim.scenario.dependencies import Dependencies, changes, depends_on
from results import NotARun, open_run


class OutOfDate(NamedTuple):
    """Why a run whose scenario has been run before is run again."""

    folder: Path  # of the earlier run
    why: str  # what has changed since


class EarlierRuns:
    """The last run of each scenario below a folder that is over, and the last one that ended early.

    A run is over if it finished or diverged: it would do so again. It ended early if it was interrupted, killed or
    stopped, or failed.
    """

    def __init__(self, out: Path) -> None:
        self._over: dict[str, tuple[Path, Dependencies]] = {}
        self._early: dict[str, tuple[Path | None, Dependencies]] = {}
        for file in sorted(out.rglob("run.json")):
            try:
                run = open_run(file.parent)
                if run.info.get("forked_from"):  # its past had other settings
                    continue
                hash, found = str(run.info["scenario_hash"]), (file.parent, run.info.get("depends_on") or {})
                if run.status in ("finished", "diverged"):
                    self._over[hash] = found
                elif run.standing in ("interrupted", "killed", "stopped", "failed"):
                    self._early[hash] = found
            except (NotARun, OSError, KeyError, TypeError, ValueError, AttributeError):  # none that can be read
                continue

    def find(self, scenario: Scenario) -> Path | OutOfDate | None:
        """Returns the folder of the scenario's run that is over, or why that is out of date; None if there is none."""
        if scenario.hash not in self._over:
            return None
        folder, before = self._over[scenario.hash]
        changed = ", ".join(changes(before, depends_on(scenario)))
        return OutOfDate(folder, changed) if changed else folder

    def to_resume(self, scenario: Scenario) -> Path | None:
        """Returns the folder of the scenario's run that ended early; None if there is none, or it is out of date.

        It gives each folder once, so that no two runs of one scenario go on there. Many threads may call it.
        """
        folder, before = self._early.pop(scenario.hash, (None, {}))
        return None if folder is None or any(changes(before, depends_on(scenario))) else folder
