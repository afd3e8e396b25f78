"""The command `sweep`: it shows a line for each run in progress, then how the runs ended."""

import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from raysim.cli.command import Address, Out, ending_by_signals, refuse
from raysim.cli.run import hint
from raysim.observers.live import Bar, Lines, bars
from raysim.parts.errors import ScenarioError
from raysim.runs.continuing import OutOfDate
from raysim.sweep import load_sweep
from raysim.sweep.batch import RunOutcome, labels, outcomes_of
from raysim.sweep.expand import Plan
from raysim.sweep.search import Trial, best, importances, search
from results.info import Status
from results.texts import Terminal, as_word, count


def sweep(
    scenario: Annotated[Path, typer.Argument(help="Scenario file, with or without a block `sweep:`.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY.PATH=VALUE,...", help="Give a key each of these values; can be repeated."),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="0,1,2", help="Short for --set seed=0,1,2.")] = None,
    cases: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Take only these cases of the sweep; by default all of them.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY.PATH=LOW,HIGH[,log]", help="Tune a key in this range; can be repeated."),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time; by default as many as the cluster, or the machine, has room for."),
    ] = None,
    inline: Annotated[
        bool, typer.Option("--inline", help="Run without Ray, each run in a process; the numbers are the same.")
    ] = False,
    address: Address = None,
    out: Out = Path("runs"),
) -> None:
    """Run every combination of a scenario's sweep, side by side, or tune its keys."""
    overrides = [*(overrides or []), *([f"seed={seeds}"] if seeds is not None else [])]
    where: dict[str, Any] = {"inline": inline, "address": address, "parallel": parallel}
    try:
        plan = load_sweep(scenario, overrides, search or [], None if cases is None else cases.split(","))
        with ending_by_signals():
            succeeded = _carry_out(plan, out / plan.name, where)
    except ScenarioError as error:  # a search may also find, after it started, that values do not fit together
        refuse(error)
    raise typer.Exit(0 if succeeded else 1)


def _carry_out(plan: Plan, folder: Path, where: dict[str, Any]) -> bool:
    """Runs a sweep, or tunes. Returns whether no run failed. where: see `run_all`."""
    console = Terminal(highlight=False)
    try:
        if plan.search is not None:
            return _tune(console, plan, folder, where)
        return _run_all(console, plan, folder, **where)
    except KeyboardInterrupt:
        console.print("the sweep was interrupted; the same command continues it", soft_wrap=True)
        raise


def _run_all(console: Console, plan: Plan, folder: Path, **where: Any) -> bool:
    """Runs all scenarios, with a line for each run in progress, and a line for each that has ended."""
    scenarios, began = plan.scenarios(), time.perf_counter()
    names = labels(scenarios)
    outcomes: dict[int, RunOutcome] = {}
    with bars(console, transient=True) as shown:
        all_runs = shown.add_task("[bold]runs", total=len(scenarios), state="")
        observers = [Bar(shown) if console.is_interactive else Lines()]
        for place, news in outcomes_of(scenarios, names, folder, observers, **where):
            if isinstance(news, OutOfDate):
                console.print(f"{escape(names[place])}: runs again: {escape(news.why)}", soft_wrap=True)
                continue
            outcomes[place] = news
            shown.advance(all_runs)
            if (status := Status(news.status)) in (Status.FAILED, Status.DIVERGED):
                helps = status.cure if status is Status.DIVERGED else ""
                why = "; ".join(filter(None, (news.why, helps and f"what usually helps: {helps}")))
                console.print(f"[{status.colour}]{status}[/] {escape(names[place])}: {escape(why)}", soft_wrap=True)
    console.print(_tally("run", (outcomes[place].status for place in sorted(outcomes))))
    failed = [(place, outcome) for place, outcome in sorted(outcomes.items()) if outcome.status == "failed"]
    for place, outcome in failed:
        _show_failure(console, names[place], outcome)
    ran = [one.folder for one in outcomes.values() if one.folder and one.status == "finished"]
    hint(began, ran, processes=min(len(ran), os.cpu_count() or 1))
    console.print(f"compare them with [bold]raysim compare {escape(as_word(folder))}", soft_wrap=True)
    return not failed


def _tune(console: Console, plan: Plan, folder: Path, where: dict[str, Any]) -> bool:
    """Carries out a search, with a line for each trial, and tells the best ones."""
    firsts = [group[0] for group in plan.groups()]
    groups, metric = labels(firsts), plan.search.metric if plan.search else ""
    splits = sorted({scenario.evaluated_splits[0] for scenario in firsts})
    console.print(f"tunes on the split {', '.join(splits)}")
    if "test" in splits:
        text = "what is chosen there looks better on it than it is; data.validation sets samples aside to tune on"
        console.print(f"  [yellow]note[/] {text}", soft_wrap=True)

    trials: list[Trial] = []
    for trial in search(plan, out=folder, **where):
        trials.append(trial)
        score = trial.status if trial.status != "finished" else f"{metric} {trial.score:.4g}"
        console.print(f"{groups[trial.group]}  trial {trial.number}: {_values(trial)}  {score}")
        for why in dict.fromkeys(trial.again):
            console.print(f"  runs again: {escape(why)}", soft_wrap=True)
    console.print(_tally("trial", (trial.status for trial in trials)))
    chosen = best(trials, plan)
    for group in sorted({trial.group for trial in trials} - {trial.group for trial in chosen}):
        console.print(f"best of {groups[group]}: none, because no trial finished", soft_wrap=True)
    for trial in chosen:
        options = " ".join(f"--set {as_word(f'{key}={value}')}" for key, value in trial.values.items())
        # No table: options that a narrow terminal cuts off cannot be copied.
        line = f"best of {groups[trial.group]}: trial {trial.number}, {metric} {trial.score:.4g}, set by\n  "
        console.print(line + escape(options), soft_wrap=True)
        if shares := importances(trials, plan, trial.group):
            told = ", ".join(f"{key} {share:.0%}" for key, share in shares.items())
            console.print(f"  importance of keys, by fANOVA: {escape(told)}", soft_wrap=True)
    failed = [(trial, outcome) for trial in trials for outcome in trial.outcomes if outcome.status == "failed"]
    for trial, outcome in failed:
        _show_failure(console, f"{groups[trial.group]}  trial {trial.number}", outcome)
    return not failed


def _show_failure(console: Console, label: str, outcome: RunOutcome) -> None:
    """Prints why a run failed, and where. Not wrapped: a path in two lines cannot be copied."""
    where = f" (in {outcome.folder})" if outcome.folder else ""
    console.print(f"  [red]failed[/] {escape(label)}: {escape((outcome.why or '') + where)}", soft_wrap=True)


def _tally(noun: str, statuses: Iterable[str]) -> str:
    """Returns how many runs or trials there were, and how many of each status."""
    counts = Counter(statuses)
    each = (f"{number} {status}" for status, number in counts.items())
    return f"{count(counts.total(), noun)}: {', '.join(each)}"


def _values(trial: Trial) -> str:
    shown = ((key, f"{value:.4g}" if isinstance(value, float) else value) for key, value in trial.values.items())
    return ", ".join(f"{key}={value}" for key, value in shown)
