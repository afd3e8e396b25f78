"""Many runs, side by side; those that were done before are not done again."""

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
    """What became of a run."""

    status: Literal["finished", "done before", "stopped", "failed"]
    folder: Path | None = None  # None: it failed
    why: str | None = None  # it failed, was stopped or ended early


# Told of a run, by its place among the scenarios: how far it is, at last what became of it. Called from many threads.
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
    """Runs scenarios side by side and gives, in their order, what became of each. A failed one does not stop others.

    A scenario of which `out` holds a finished run is not run again: the same numbers would come of it. inline: without
    Ray, in processes of this machine. parallel: so many runs at a time; by default as many as the cluster has room for
    or, inline, as this machine has cores. Raises actors.MissingResources where there is no cluster.
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
    """Runs a scenario, whatever comes of it."""
    try:
        result = slots.run(scenario, out, watch)
    except RunFailed as error:
        return RunOutcome("failed", why=str(error))
    stopped = result.info["status"] == "stopped"
    return RunOutcome("stopped" if stopped else "finished", result.folder, result.info["ended_early"])


def _by_hash(scenarios: Sequence[Scenario]) -> dict[str, list[int]]:
    """The places of equal scenarios."""
    places: dict[str, list[int]] = {}
    for place, scenario in enumerate(scenarios):
        places.setdefault(scenario.hash, []).append(place)
    return places


def finished_runs(out: Path) -> dict[str, Path]:
    """The folders of the finished runs below a folder, by the hash of their scenario."""
    found = {}
    for file in sorted(out.rglob("run.json")):
        try:
            info = json.loads(file.read_text(encoding="utf-8"))
            if info["status"] == "finished":
                found[info["scenario_hash"]] = file.parent
        except (OSError, ValueError, KeyError, TypeError):  # no run that could be used instead of one to come
            continue
    return found
