"""Shows a sweep on the command line: a line for each run that goes on, then how the runs ended."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from raysim.observers import Lines
from raysim.observers.live import Bar, bars
from raysim.runs.previous import OutOfDate
from raysim.scenario import Scenario
from raysim.sweep.batch import RunOutcome, labels, outcomes_of
from raysim.sweep.expand import Plan
from raysim.sweep.search import Trial, best, best_scenario, search
from raysim.sweep.settings import Search
from results.disk import replacing
from results.ending import Status
from results.keys import flatten
from results.terminal import Terminal
from results.texts import as_word, count
from results.yaml import as_yaml


def carry_out(plan: Plan, *, out: Path, write_best: Path | None = None, **where: Any) -> bool:
    """Runs a sweep and shows a line for each run that goes on. Returns whether no run failed.

    write_best: where a search writes the scenario of its best trial. where: see `run_all`.
    """
    console = Terminal()
    folder = out / plan.name
    for line in _partly(plan):
        console.print(line, soft_wrap=True, highlight=False)
    with _telling_interruption(console):
        if plan.search is not None:
            return _tune(console, plan, plan.search, folder, write_best, where)
        scenarios = plan.scenarios()
        names = labels(scenarios)
        outcomes = _run_all(console, scenarios, names, folder, where)
    return _show_outcomes(console, names, outcomes, folder)


@contextmanager
def _telling_interruption(console: Console) -> Iterator[None]:
    """Prints how the sweep goes on, if the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        console.print("the sweep was interrupted; the same command goes on with it", soft_wrap=True, highlight=False)
        raise


def _partly(plan: Plan) -> list[str]:
    """Returns a line for each key of the command line, or of the search, that only some cases have."""
    tuned = plan.search.over if plan.search else {}
    partly = sorted({key for keys in plan.without.values() for key in keys})
    having = {key: [case for case, keys in plan.without.items() if key not in keys] for key in partly}
    return [
        f"{key} is {'tuned' if key in tuned else 'set'} in the cases that have it: {escape(', '.join(cases))}"
        for key, cases in having.items()
    ]


def _run_all(
    console: Console, scenarios: list[Scenario], names: list[str], folder: Path, where: dict[str, Any]
) -> list[RunOutcome]:
    """Runs all scenarios, with a line for each run that goes on, and tells what becomes of them when it is known."""
    outcomes: dict[int, RunOutcome] = {}
    with bars(console, transient=True) as shown:
        all_runs = shown.add_task("[bold]runs", total=len(scenarios), state="")
        observers = [Bar(shown) if console.is_interactive else Lines(), *where.pop("observers")]
        for place, news in outcomes_of(scenarios, names, folder, observers, **where):
            if isinstance(news, OutOfDate):
                told = f"{escape(names[place])}: runs again: {escape(news.why)}"
                console.print(told, soft_wrap=True, highlight=False)
                continue
            outcomes[place] = news
            shown.advance(all_runs)
            if (status := Status(news.status)) in (Status.FAILED, Status.DIVERGED):
                helps = ""
                if status is Status.DIVERGED:
                    helps = f"what mostly helps: {status.cure(flatten(scenarios[place].resolved()))}"
                told = "; ".join(filter(None, (news.why, helps)))
                console.print(f"[{status.colour}]{status}[/] {escape(names[place])}: {escape(told)}", soft_wrap=True)
    return [outcomes[place] for place in range(len(scenarios))]


def _show_outcomes(console: Console, labels: list[str], outcomes: list[RunOutcome], folder: Path) -> bool:
    console.print(_tally("run", [outcome.status for outcome in outcomes]))
    failed = [pair for pair in zip(labels, outcomes, strict=True) if pair[1].status == "failed"]
    for label, outcome in failed:
        console.print(_failure(label, outcome), soft_wrap=True, highlight=False)
    console.print(f"compare them with [bold]raysim compare {escape(as_word(folder))}", soft_wrap=True, highlight=False)
    return not failed


def _tune(
    console: Console, plan: Plan, settings: Search, folder: Path, write_best: Path | None, where: dict[str, Any]
) -> bool:
    firsts = [group[0] for group in plan.groups()]
    groups = labels(firsts)
    splits = sorted({scenario.evaluated_splits[0] for scenario in firsts})
    console.print(f"tunes on the split {', '.join(splits)}", highlight=False)
    if "test" in splits:
        text = "what is chosen there looks better on it than it is; data.validation sets samples aside to tune on"
        console.print(f"  [yellow]note[/] {text}", soft_wrap=True, highlight=False)

    trials: list[Trial] = []
    for trial in search(plan, out=folder, **where):
        trials.append(trial)
        score = trial.status if trial.status != "finished" else f"{settings.metric} {trial.score:.4g}"
        values = f": {_values(trial)}" if trial.values else ""
        console.print(f"{groups[trial.group]}  trial {trial.number}{values}  {score}", highlight=False)
        for why in dict.fromkeys(trial.again):
            console.print(f"  runs again: {escape(why)}", soft_wrap=True, highlight=False)
    failed = [(trial, outcome) for trial in trials for outcome in trial.outcomes if outcome.status == "failed"]
    console.print(_tally("trial", [trial.status for trial in trials]))
    chosen = best(trials, plan)
    for group in sorted({trial.group for trial in trials} - {trial.group for trial in chosen}):
        console.print(f"best of {groups[group]}: none, because no trial finished", soft_wrap=True, highlight=False)
    for trial in chosen:
        told = f"best of {groups[trial.group]}: trial {trial.number}, {settings.metric} {trial.score:.4g}"
        options = " ".join(f"--set {as_word(f'{key}={value}')}" for key, value in trial.values.items())
        # No table: options that a narrow terminal cuts off cannot be copied.
        by = f"set by\n  {escape(options)}" if options else "with the file's own values"
        console.print(f"{told}, {by}", soft_wrap=True, highlight=False)
    if write_best is not None and (scenario := best_scenario(trials, plan)):
        with replacing(write_best) as hidden:
            hidden.write_text(as_yaml(scenario.resolved()), encoding="utf-8")
        console.print(f"the best scenario is in {escape(str(write_best))}", soft_wrap=True, highlight=False)
    for trial, outcome in failed:
        label = f"{groups[trial.group]}  trial {trial.number}"
        console.print(_failure(label, outcome), soft_wrap=True, highlight=False)
    return not failed


def _failure(label: str, outcome: RunOutcome) -> str:
    """Returns a line with why a run failed, and where. Not to be wrapped: a path in two lines cannot be copied."""
    where = f" (in {outcome.folder})" if outcome.folder else ""
    return f"  [red]failed[/] {escape(label)}: {escape((outcome.why or '') + where)}"


def _tally(noun: str, statuses: list[str]) -> str:
    """Returns how many runs or trials there were, and how many of each status."""
    counts = Counter(statuses)
    return f"{count(len(statuses), noun)}: " + ", ".join(f"{number} {status}" for status, number in counts.items())


def _values(trial: Trial) -> str:
    spelt = ((key, f"{value:.4g}" if isinstance(value, float) else value) for key, value in trial.values.items())
    return ", ".join(f"{key}={value}" for key, value in spelt)
