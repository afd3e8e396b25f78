"""Shows a sweep on the command line: a line for each run that goes on, then how the runs ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from raysim.cli.progress_lines import ProgressLines, describe
from raysim.engine.progress import Progress
from raysim.runs.previous import OutOfDate
from raysim.scenario import Scenario
from raysim.sweep.batch import RunOutcome, run_all
from raysim.sweep.expand import Plan
from raysim.sweep.search import Trial, best, search
from raysim.sweep.settings import Search
from results.keys import flatten, varying
from results.texts import as_word, count


def carry_out(plan: Plan, *, out: Path, inline: bool, address: str | None, parallel: int | None) -> bool:
    """Runs a sweep and shows a line for each run that goes on. Returns whether no run failed."""
    console = Console()
    folder = out / plan.name
    for line in _partly(plan):
        console.print(line, soft_wrap=True, highlight=False)
    where: dict[str, Any] = {"inline": inline, "address": address, "parallel": parallel}
    with _telling_interruption(console):
        if plan.search is not None:
            return _tune(console, plan, plan.search, folder, where)
        scenarios = plan.scenarios()
        with _Lines(console, scenarios) as lines:
            outcomes = run_all(scenarios, out=folder, news=lines.show, **where)
    return _show_outcomes(console, labels(scenarios), outcomes, folder)


@contextmanager
def _telling_interruption(console: Console) -> Iterator[None]:
    """Prints how the sweep goes on, if the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        console.print("the sweep was interrupted; the same command goes on with it", soft_wrap=True, highlight=False)
        raise


def _partly(plan: Plan) -> list[str]:
    """Returns a line for each key of the command line that only some cases have."""
    partly = sorted({key for keys in plan.without.values() for key in keys})
    having = {key: [case for case, keys in plan.without.items() if key not in keys] for key in partly}
    return [f"{key} is set in the cases that have it: {escape(', '.join(cases))}" for key, cases in having.items()]


def labels(scenarios: list[Scenario]) -> list[str]:
    """Returns a label for each scenario: the keys in which the scenarios differ, or its name if they do not."""
    keys = [flatten(scenario.resolved()) for scenario in scenarios]
    differ = varying(keys)
    given = {key for key in differ if all(key in of_run for of_run in keys)} or set(differ)
    return [
        ", ".join(_spell(key, of_run[key]) for key in differ if key in given and key in of_run) or scenario.name
        for of_run, scenario in zip(keys, scenarios, strict=True)
    ]


def _spell(key: str, value: object) -> str:
    """Returns a key and its value as text for a label. For names of parts and of scenarios, the key is left out."""
    return str(value) if key == "name" or key.endswith(".name") else f"{key.rpartition('.')[2]}={value}"


class _Lines:
    """Progress lines: one for the sweep as a whole, and one for each run that goes on."""

    def __init__(self, console: Console, scenarios: list[Scenario]) -> None:
        self._scenarios, self._labels = scenarios, labels(scenarios)
        self._bars = Bars(
            TextColumn("{task.description}"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._all = self._bars.add_task("[bold]runs", total=len(scenarios), state="")
        self._lines: dict[int, TaskID] = {}
        self._printed = None if console.is_interactive else ProgressLines(console)

    def __enter__(self) -> _Lines:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bars.stop()

    def show(self, place: int, news: Progress | RunOutcome | OutOfDate) -> None:
        """Shows news of a run. Raises KeyboardInterrupt if nobody reads them any more, as below `| head`."""
        try:
            self._show(place, news)
        except SystemExit:  # raised by Rich, and it would end this run only
            raise KeyboardInterrupt from None

    def _show(self, place: int, news: Progress | RunOutcome | OutOfDate) -> None:
        if isinstance(news, OutOfDate):
            text = f"{escape(self._labels[place])}: runs again: {escape(news.why)}"
            self._bars.console.print(text, soft_wrap=True, highlight=False)
            return
        if isinstance(news, Progress) and self._printed:
            self._printed.show(self._labels[place], news)
            return
        if isinstance(news, Progress):
            if place not in self._lines:
                total = self._scenarios[place].run.rounds
                self._lines[place] = self._bars.add_task(escape(self._labels[place]), total=total, state="")
            self._bars.update(self._lines[place], completed=news.round, state=describe(news))
            return
        if place in self._lines:
            self._bars.remove_task(self._lines.pop(place))
        self._bars.advance(self._all)
        if news.status == "failed":
            told = f"[red]failed[/] {escape(self._labels[place])}: {escape(news.why or '')}"
            self._bars.console.print(told, soft_wrap=True)
        if news.status == "diverged":
            told = f"[yellow]diverged[/] {escape(self._labels[place])}: {escape(news.why or '')}"
            self._bars.console.print(told, soft_wrap=True)


def _show_outcomes(console: Console, labels: list[str], outcomes: list[RunOutcome], folder: Path) -> bool:
    console.print(_tally("run", [outcome.status for outcome in outcomes]))
    failed = [pair for pair in zip(labels, outcomes, strict=True) if pair[1].status == "failed"]
    for label, outcome in failed:
        console.print(_failure(label, outcome), soft_wrap=True, highlight=False)
    console.print(f"compare them with [bold]raysim compare {escape(as_word(folder))}", soft_wrap=True, highlight=False)
    return not failed


def _tune(console: Console, plan: Plan, settings: Search, folder: Path, where: dict[str, Any]) -> bool:
    firsts = [group[0] for group in plan.groups()]
    groups = labels(firsts)
    splits = sorted({scenario.evaluated_splits[0] for scenario in firsts})
    console.print(f"tunes on the split {', '.join(splits)}", highlight=False)
    if "test" in splits:
        text = "what is chosen there looks better on it than it is; data.validation sets samples aside to tune on"
        console.print(f"  [yellow]note[/] {text}", soft_wrap=True, highlight=False)

    def tell(trial: Trial) -> None:
        score = trial.status if trial.status != "finished" else f"{settings.metric} {trial.score:.4g}"
        console.print(f"{groups[trial.group]}  trial {trial.number}: {_values(trial)}  {score}", highlight=False)
        for why in dict.fromkeys(trial.again):
            console.print(f"  runs again: {escape(why)}", soft_wrap=True, highlight=False)

    trials = search(plan, out=folder, news=tell, **where)
    failed = [(trial, outcome) for trial in trials for outcome in trial.outcomes if outcome.status == "failed"]
    console.print(_tally("trial", [trial.status for trial in trials]))
    chosen = best(trials, plan)
    for group in sorted({trial.group for trial in trials} - {trial.group for trial in chosen}):
        console.print(f"best of {groups[group]}: none, because no trial finished", soft_wrap=True, highlight=False)
    for trial in chosen:
        told = f"best of {groups[trial.group]}: trial {trial.number}, {settings.metric} {trial.score:.4g}"
        options = " ".join(f"--set {as_word(f'{key}={value}')}" for key, value in trial.values.items())
        # No table: options that a narrow terminal cuts off cannot be copied.
        console.print(f"{told}, set by\n  {escape(options)}", soft_wrap=True, highlight=False)
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
