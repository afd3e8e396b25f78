"""Runs many scenarios side by side, except those that have finished before."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from actors.fault import describe
from raysim.observers.live import showing
from raysim.observers.observer import Watcher
from raysim.parts.errors import Problem, RunFailed, ScenarioError
from raysim.runs.continuing import EarlierRuns, OutOfDate
from raysim.runs.observing import observers_of
from raysim.scenario import Scenario
from raysim.scenario.load import scenario_of
from raysim.sweep.expand import Plan, load_sweep
from raysim.sweep.slots import Slots, open_slots
from results.groups import telling
from results.keys import flatten, varying
from results.location import location


class RunOutcome(NamedTuple):
    """How a run ended."""

    status: Literal["finished", "done before", "stopped", "diverged", "failed"]
    folder: Path | None = None  # None if it failed before it had one
    why: str | None = None  # the reason if it failed, was stopped or ended early, or what was not finite


def run_all(
    scenarios: Sequence[Scenario | dict[str, Any]] | Plan | str | Path,
    *,
    out: str | Path = "runs",
    inline: bool = False,
    address: str | None = None,
    parallel: int | None = None,
    observers: Sequence[Watcher] = (),
    progress: bool = True,
) -> list[RunOutcome]:
    """Runs scenarios side by side and returns their outcomes, in order. A run that fails does not stop the others.

    scenarios: each as `run` takes it; or a sweep, as `load_sweep` returns it, or the path of its file, for the runs of
    the sweep, which must not have a search.
    A scenario of which `out` holds a run that finished or diverged is not run again, because it would give the same
    numbers; unless the run is out of date, because raysim, the user's own modules or files of data have changed since.
    A run that ended early continues from its checkpoint.

    inline: without Ray, in processes of this machine. parallel: number of runs at a time; by default as many as the
    cluster has room for or, inline, as this machine has cores. observers: see `run`; each run has its own copies,
    but functions are called for all of them, from many threads. progress: see `run`. Raises actors.MissingResources
    if there is no cluster.
    """
    if isinstance(scenarios, str | Path):
        scenarios = load_sweep(scenarios)
    if isinstance(scenarios, Plan) and scenarios.search is not None:
        text = "must not be there for runs that are known beforehand; tune the file with `raysim sweep`"
        raise ScenarioError(scenarios.source, [Problem("sweep.search", text)])
    scenarios = scenarios.scenarios() if isinstance(scenarios, Plan) else [*map(scenario_of, scenarios)]
    where: dict[str, Any] = {"inline": inline, "address": address, "parallel": parallel}
    outcomes: dict[int, RunOutcome] = {}
    with showing(progress, len(scenarios)) as shown:
        told = [*shown.observers, *observers]
        for place, news in outcomes_of(scenarios, labels(scenarios), location(out), told, **where):
            if isinstance(news, RunOutcome):
                outcomes[place] = news
                shown.over()
    return [outcomes[place] for place in range(len(scenarios))]


def outcomes_of(
    scenarios: Sequence[Scenario], labels: Sequence[str], out: Path, observers: Sequence[Watcher], **where: Any
) -> Iterator[tuple[int, RunOutcome | OutOfDate]]:
    """Runs scenarios as `run_all`, and yields the place of each with its outcome as soon as that is known.

    For each run that was over and is run again, it first yields the reason. labels: the names by which observers show
    the runs. where: see `open_slots`.
    """
    todo: list[list[int]] = []
    earlier = EarlierRuns(out)
    same: dict[str, list[int]] = {}  # the places of equal scenarios, by their hash
    for place, scenario in enumerate(scenarios):
        same.setdefault(scenario.hash, []).append(place)
    for places in same.values():
        found = earlier.find(scenarios[places[0]])
        if isinstance(found, OutOfDate):
            yield places[0], found
        elif found is not None:
            yield from ((place, RunOutcome("done before", found)) for place in places)
            continue
        todo.append(places)

    def carry_out(places: list[int]) -> RunOutcome:
        return attempt(slots, out, observers, earlier, scenarios[places[0]], labels[places[0]])

    if todo:
        chosen = [scenarios[places[0]] for places in todo]
        with open_slots(chosen, **where) as slots:
            for places, outcome in slots.each(carry_out, todo):
                yield from ((place, outcome) for place in places)


def attempt(
    slots: Slots, out: Path, observers: Sequence[Watcher], earlier: EarlierRuns, scenario: Scenario, label: str
) -> RunOutcome:
    """Runs a scenario, or continues with a run of it that ended early, and returns how that ended, even if it failed.

    observers: those of all runs. Raises ScenarioError if one of them cannot work here.
    """
    own = observers_of(scenario, observers, one_of_several=True)
    try:
        result = slots.run(scenario, out, own, earlier.to_resume(scenario), label)
    except RunFailed as error:
        return RunOutcome("failed", error.folder, str(error))
    except (Exception, SystemExit) as error:  # whatever it is, such as missing resources, the other runs continue
        return RunOutcome("failed", why=describe(error))
    return RunOutcome(result.info["status"], result.folder, result.run.diverged or result.info["ended_early"])


def labels(scenarios: Sequence[Scenario]) -> list[str]:
    """Returns a label for each scenario: its name, which ends with its case, its seed, and as many other keys as tell
    it from the others. What is the same for all is left out, unless all is."""
    keys = [flatten(scenario.resolved()) for scenario in scenarios]
    differ = sorted(varying(keys), key=lambda key: (key != "name", key != "seed"))
    chosen = telling(differ, [tuple(map(of_run.get, differ)) for of_run in keys])
    chosen.sort(key=lambda key: key == "seed")
    return [
        ", ".join(_spell(key, of_run[key]) for key in chosen if key in of_run) or scenario.name
        for of_run, scenario in zip(keys, scenarios, strict=True)
    ]


def _spell(key: str, value: object) -> str:
    """Returns a key and its value as text for a label. For names of parts and of scenarios, the key is left out."""
    return str(value) if key == "name" or key.endswith(".name") else f"{key.rpartition('.')[2]}={value}"
