"""Runs many scenarios side by side, except those that have finished before."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from raysim.engine.progress import Progress
from raysim.errors import RunFailed
from raysim.scenario import Scenario
from raysim.sweep.slots import Slots, open_slots


class RunOutcome(NamedTuple):
    """How a run ended."""

    status: Literal["finished", "done before", "stopped", "diverged", "failed"]
    folder: Path | None = None  # None if it failed
    why: str | None = None  # why it failed, was stopped or ended early, or what was not finite


# Called, from many threads, with a run's place among the scenarios and its progress or, at the end, its outcome.
News = Callable[[int, Progress | RunOutcome], None]


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
    numbers. inline: without Ray, in processes of this machine. parallel: number of runs at a time; by default as many
    as the cluster has room for or, inline, as this machine has cores. Raises actors.MissingResources if there is no
    cluster.
    """
    tell = news or (lambda place, what: None)
    outcomes: dict[int, RunOutcome] = {}

    def settle(places: list[int], outcome: RunOutcome) -> None:
        for place in places:
            outcomes[place] = outcome
            tell(place, outcome)

    todo: list[list[int]] = []
    done = finished_runs(Path(out))
    for hash, places in _by_hash(scenarios).items():
        if hash in done:
            settle(places, RunOutcome("done before", done[hash]))
        else:
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
        return RunOutcome("failed", why=str(error))
    return RunOutcome(result.info["status"], result.folder, result.run.diverged or result.info["ended_early"])


def _by_hash(scenarios: Sequence[Scenario]) -> dict[str, list[int]]:
    """Returns the places of equal scenarios, by their hash."""
    places: dict[str, list[int]] = {}
    for place, scenario in enumerate(scenarios):
        places.setdefault(scenario.hash, []).append(place)
    return places


def finished_runs(out: Path) -> dict[str, Path]:
    """Returns the folders of the runs below a folder that are over, by the hash of their scenario.

    Those are finished ones and those that diverged.
    """
    found = {}
    for file in sorted(out.rglob("run.json")):
        try:
            info = json.loads(file.read_text(encoding="utf-8"))
            if info["status"] in ("finished", "diverged"):  # either is what the scenario gives, each time
                found[info["scenario_hash"]] = file.parent
        except (OSError, ValueError, KeyError, TypeError):  # not the folder of a run that can be read
            continue
    return found
