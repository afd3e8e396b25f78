"""Runs many scenarios side by side, except those that have finished before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from actors.fault import describe
from raysim.engine.progress import Progress
from raysim.parts.errors import Problem, RunFailed, ScenarioError
from raysim.runs.previous import EarlierRuns, OutOfDate
from raysim.scenario import Scenario
from raysim.scenario.load import scenario_of
from raysim.sweep.expand import load_sweep
from raysim.sweep.slots import Slots, open_slots
from results.location import location


class RunOutcome(NamedTuple):
    """How a run ended."""

    status: Literal["finished", "done before", "stopped", "diverged", "failed"]
    folder: Path | None = None  # None if it failed before it had one
    why: str | None = None  # why it failed, was stopped or ended early, or what was not finite


# Called, from many threads, with a run's place among the scenarios and its progress or, at the end, its outcome.
News = Callable[[int, Progress | RunOutcome | OutOfDate], None]


def run_all(
    scenarios: Sequence[Scenario | dict[str, Any]] | str | Path,
    *,
    out: str | Path = "runs",
    inline: bool = False,
    address: str | None = None,
    parallel: int | None = None,
    news: News | None = None,
) -> list[RunOutcome]:
    """Runs scenarios side by side and returns their outcomes, in order. A run that fails does not stop the others.

    scenarios: each as `run` takes it; or the path of a file, for the runs of its sweep, which must not have a search.
    A scenario of which `out` holds a run that finished or diverged is not run again, because it would give the same
    numbers; unless the run is out of date, because raysim, the user's own modules or files of data have changed since.
    A run that ended early goes on from its checkpoint.

    inline: without Ray, in processes of this machine. parallel: number of runs at a time; by default as many as the
    cluster has room for or, inline, as this machine has cores. Raises actors.MissingResources if there is no cluster.
    """
    scenarios = _of_file(scenarios) if isinstance(scenarios, str | Path) else [*map(scenario_of, scenarios)]
    tell = news or (lambda place, what: None)
    outcomes: dict[int, RunOutcome] = {}

    def settle(places: list[int], outcome: RunOutcome) -> None:
        for place in places:
            outcomes[place] = outcome
            tell(place, outcome)

    todo: list[list[int]] = []
    out = location(out)
    earlier = EarlierRuns(out)
    for places in _by_hash(scenarios).values():
        found = earlier.find(scenarios[places[0]])
        if isinstance(found, OutOfDate):
            tell(places[0], found)
        elif found is not None:
            settle(places, RunOutcome("done before", found))
            continue
        todo.append(places)

    def carry_out(places: list[int]) -> None:
        scenario = scenarios[places[0]]
        before = earlier.to_resume(scenario)
        settle(places, attempt(slots, scenario, out, lambda progress: tell(places[0], progress), before))

    if todo:
        chosen = [scenarios[places[0]] for places in todo]
        with open_slots(chosen, inline=inline, address=address, parallel=parallel) as slots:
            slots.each(carry_out, todo)
    return [outcomes[place] for place in range(len(scenarios))]


def attempt(
    slots: Slots, scenario: Scenario, out: Path, watch: Callable[[Progress], None], before: Path | None = None
) -> RunOutcome:
    """Runs a scenario and returns how that ended, even if it failed. before: a folder of a run that is to go on."""
    try:
        result = slots.run(scenario, out, watch, before)
    except RunFailed as error:
        return RunOutcome("failed", error.folder, str(error))
    except ScenarioError:  # of a search: no run measures its metric
        raise
    except (Exception, SystemExit) as error:  # such as missing resources: whatever it is, the other runs go on
        return RunOutcome("failed", why=describe(error))
    return RunOutcome(result.info["status"], result.folder, result.run.diverged or result.info["ended_early"])


def _of_file(path: str | Path) -> list[Scenario]:
    """Returns the scenarios of a file's sweep. Raises ScenarioError if that has a search, whose trials follow."""
    plan = load_sweep(path)
    if plan.search is not None:
        text = "must not be there for runs that are known beforehand; tune the file with `raysim sweep`"
        raise ScenarioError(str(path), [Problem("sweep.search", text)])
    return plan.scenarios()


def _by_hash(scenarios: Sequence[Scenario]) -> dict[str, list[int]]:
    """Returns the places of equal scenarios, by their hash."""
    places: dict[str, list[int]] = {}
    for place, scenario in enumerate(scenarios):
        places.setdefault(scenario.hash, []).append(place)
    return places
