"""Runs many scenarios side by side, except those that have finished before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from actors.host import describe
from raysim.engine.progress import Progress
from raysim.errors import RunFailed, ScenarioError
from raysim.scenario import Scenario
from raysim.scenario.dependencies import Dependencies, changes, depends_on
from raysim.sweep.slots import Slots, open_slots


class RunOutcome(NamedTuple):
    """How a run ended."""

    status: Literal["finished", "done before", "stopped", "diverged", "failed"]
    folder: Path | None = None  # None if it failed before it had one
    why: str | None = None  # why it failed, was stopped or ended early, or what was not finite


class OutOfDate(NamedTuple):
    """Why a run whose scenario has been run before is run again."""

    folder: Path  # of the earlier run
    why: str  # what has changed since


# Called, from many threads, with a run's place among the scenarios and its progress or, at the end, its outcome.
News = Callable[[int, Progress | RunOutcome | OutOfDate], None]


def run_all(
    scenarios: Sequence[Scenario],
    *,
    out: str | Path = "runs",
    inline: bool = False,
    address: str | None = None,
    parallel: int | None = None,
    news: News | None = None,
) -> list[RunOutcome]:
    """Runs scenarios side by side and returns their outcomes, in order. A run that fails does not stop the others.

    A scenario of which `out` holds a run that finished or diverged is not run again, because it would give the same
    numbers; unless the run is out of date, because raysim, the user's own modules or files of data have changed since.
    inline: without Ray, in processes of this machine. parallel: number of runs at a time; by default as many as the
    cluster has room for or, inline, as this machine has cores. Raises actors.MissingResources if there is no cluster.
    """
    tell = news or (lambda place, what: None)
    outcomes: dict[int, RunOutcome] = {}

    def settle(places: list[int], outcome: RunOutcome) -> None:
        for place in places:
            outcomes[place] = outcome
            tell(place, outcome)

    todo: list[list[int]] = []
    done = FinishedRuns(Path(out))
    for places in _by_hash(scenarios).values():
        found = done.find(scenarios[places[0]])
        if isinstance(found, Path):
            settle(places, RunOutcome("done before", found))
            continue
        if found:
            tell(places[0], found)
        todo.append(places)

    def carry_out(places: list[int]) -> None:
        settle(places, attempt(slots, scenarios[places[0]], Path(out), lambda progress: tell(places[0], progress)))

    if todo:
        chosen = [scenarios[places[0]] for places in todo]
        with open_slots(chosen, inline=inline, address=address, parallel=parallel) as slots:
            slots.each(carry_out, todo)
    return [outcomes[place] for place in range(len(scenarios))]


def attempt(slots: Slots, scenario: Scenario, out: Path, watch: Callable[[Progress], None]) -> RunOutcome:
    """Runs a scenario and returns how that ended, even if it failed."""
    try:
        result = slots.run(scenario, out, watch)
    except RunFailed as error:
        return RunOutcome("failed", error.folder, str(error))
    except ScenarioError:  # of a search: no run measures its metric
        raise
    except (Exception, SystemExit) as error:  # such as missing resources: whatever it is, the other runs go on
        return RunOutcome("failed", why=describe(error))
    return RunOutcome(result.info["status"], result.folder, result.run.diverged or result.info["ended_early"])


def _by_hash(scenarios: Sequence[Scenario]) -> dict[str, list[int]]:
    """Returns the places of equal scenarios, by their hash."""
    places: dict[str, list[int]] = {}
    for place, scenario in enumerate(scenarios):
        places.setdefault(scenario.hash, []).append(place)
    return places


class FinishedRuns:
    """The last run of each scenario below a folder that is over, which is the one that comparisons show.

    A run is over if it finished or diverged.
    """

    def __init__(self, out: Path) -> None:
        self._by_hash: dict[str, tuple[Path, Dependencies]] = {}
        for file in sorted(out.rglob("run.json")):
            try:
                info = json.loads(file.read_text(encoding="utf-8"))
                if info.get("forked_from"):  # its past had other settings
                    continue
                if info["status"] in ("finished", "diverged"):  # either is what the scenario gives each time
                    self._by_hash[info["scenario_hash"]] = (file.parent, info.get("depends_on") or {})
            except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not a run's folder that can be read
                continue

    def find(self, scenario: Scenario) -> Path | OutOfDate | None:
        """Returns the folder of the scenario's run, or why that is out of date; None if there is none."""
        if scenario.hash not in self._by_hash:
            return None
        folder, before = self._by_hash[scenario.hash]
        changed = ", ".join(changes(before, depends_on(scenario)))
        return OutOfDate(folder, changed) if changed else folder
