"""Shows a single run on the command line: first its progress, then its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from raysim.cli.progress_lines import ProgressLines, describe
from raysim.cli.telling import telling
from raysim.engine.progress import Progress
from raysim.parts.errors import RunFailed
from raysim.runs.result import Result
from raysim.runs.run import run
from raysim.scenario import Scenario
from results import open_run, summary
from results.show import render
from results.texts import count


def carry_out(
    scenario: Scenario, *, inline: bool, dry: bool, address: str | None, out: Path, resume: bool = False
) -> Result:
    """Runs a scenario with a progress display, prints its summary and where its folder is, and returns its result."""

    def start(progress: Callable[[Progress], None]) -> Result:
        return run(scenario, out=out, inline=inline, dry=dry, address=address, resume=resume, progress=progress)

    return watch(scenario, start, where="this process" if inline or dry else "Ray", dry=dry)


def watch(
    scenario: Scenario, start: Callable[[Callable[[Progress], None]], Result], *, where: str, dry: bool = False
) -> Result:
    """Shows the progress of a run, then its summary and where its folder is, and returns its result.

    start: runs the scenario; gets the function to call with progress. where: where it runs, for the display.
    """
    console = Console()
    shown = _bar if console.is_interactive else _lines
    with telling(console), shown(console, scenario, f"starting in {where}", dry) as show:
        result = start(show)
    console.print(render(summary(open_run(result.folder))))
    if dry:
        console.print(timeline(result.run.first("updates", 20)))
    console.print(f"results in [bold]{escape(str(result.folder))}", soft_wrap=True, highlight=False)
    return result


@contextmanager
def _bar(console: Console, scenario: Scenario, state: str, transient: bool) -> Iterator[Callable[[Progress], None]]:
    """Yields a function that shows progress in one line of a terminal. transient: whether the line goes in the end."""
    bar = Bar(
        TextColumn("[bold]{task.description}"),  # there is no bar, because all of this must fit in 80 columns
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        console=console,
        transient=transient,
    )
    with bar:
        task = bar.add_task(scenario.name, total=scenario.run.rounds, state=state)
        yield lambda progress: bar.update(task, completed=progress.round, state=describe(progress))


@contextmanager
def _lines(console: Console, scenario: Scenario, state: str, transient: bool) -> Iterator[Callable[[Progress], None]]:
    """Yields a function that prints a line of progress now and then."""
    del transient  # lines stay
    console.print(f"{escape(scenario.name)}  {state}", soft_wrap=True, highlight=False)
    lines = ProgressLines(console)
    yield lambda progress: lines.show(scenario.name, progress)


def sum_up(scenarios: Sequence[Scenario], ends: Sequence[Result | Exception]) -> None:
    """Prints how each of several runs ended: the folder of its results, or why it failed."""
    console = Console(highlight=False)
    failed = sum(isinstance(end, Exception) for end in ends)
    console.print(f"\n{count(len(ends), 'run')}, {failed} failed")
    for scenario, end in zip(scenarios, ends, strict=True):
        if isinstance(end, Exception):
            where = end.folder if isinstance(end, RunFailed) else None
            text = f"[red]failed[/] {escape(str(end))}" + (f" (in {escape(str(where))})" if where else "")
        else:
            text = f"{end.run.status} in {escape(str(end.folder))}"
        console.print(f"  {escape(scenario.name)}: {text}", soft_wrap=True)


def exit_code(*ends: Result | Exception) -> int:
    """Returns the exit code of a command that carried out these runs: 1 if one failed, else 3 if one diverged."""
    if any(isinstance(end, Exception) for end in ends):
        return 1
    return 3 if any(isinstance(end, Result) and end.run.status == "diverged" for end in ends) else 0


def timeline(updates: Sequence[Mapping[Any, Any]]) -> Table:
    """Returns a table of the first updates of a timeline."""
    columns = ("dispatch", "client", "dispatched_at", "arrived_at", "version", "staleness", "status", "step")
    table = Table(title="first updates", box=None, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right")
    for row in updates:
        table.add_row(*(_cell(row[c]) for c in columns))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
