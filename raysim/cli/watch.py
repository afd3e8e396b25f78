"""The command `watch`: how runs go on, in the terminal."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from raysim.cli.bad_input import refusing_wrong_runs
from raysim.cli.options import to_location
from results import load
from results.ending import Status
from results.glance import Glance, at_work, glance, glances
from results.listing import labels
from results.reader import NoRuns
from results.run_set import RunSet
from results.terminal import Terminal

_BLOCKS = "▁▂▃▄▅▆▇█"
_CURVES = 6  # of a run that are shown


def watch(
    folder: Annotated[
        Path,
        typer.Argument(help="A run's folder, or one that holds runs, or its URI.", parser=to_location),
    ] = Path("runs"),
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and do not wait for the end.")] = False,
) -> None:
    """Watch a run, or all runs in a folder, until they end: curves, who works, and what is waited for.

    In a terminal, it waits for the first run of a folder that holds none."""
    console = Terminal()
    with refusing_wrong_runs():
        if once or not console.is_interactive:
            shown, _ = look(folder, console.width, console.height)
            console.print(shown)
            return
        try:
            with Live(console=console, auto_refresh=False) as live:
                goes_on = True
                while goes_on:
                    shown, goes_on = look(folder, console.width, console.height, waits=True)
                    live.update(shown, refresh=True)
                    if goes_on:
                        time.sleep(every)
        except KeyboardInterrupt:  # the runs go on
            raise typer.Exit(130) from None


def look(folder: Path, width: int, height: int, *, waits: bool = False) -> tuple[RenderableType, bool]:
    """Returns what there is to see of the runs in a folder, and whether one of them goes on.

    width, height: the size of the terminal, in letters and lines. waits: whether a first run may still come;
    else it raises NoRuns where there is none.
    """
    try:
        runs = load(folder, damaged=[])
    except NoRuns:
        if waits:
            return Text(f"waits for a first run in {folder}; Ctrl-C ends this"), True
        raise
    if len(runs) == 1:
        found = glance(runs[0])
        return one(found, width), found.goes_on
    return several(runs, width, height)


def one(found: Glance, width: int) -> RenderableType:
    """Returns a run: how far it is, its curves, its workers, and what it waits for."""
    head = Text.assemble((found.run.id, "bold"), "  ", _status(found.standing))
    head.append(f"  round {found.progress}  t={found.virtual_time:.6g}")
    curves = Table.grid(padding=(0, 2))
    for curve in found.curves[:_CURVES]:
        curves.add_row(Text(curve.label), Text(sparkline(curve.values, width // 2), "cyan"), f"{curve.values[-1]:.4g}")
    heads = ("worker", "node", "busy", "last job")
    workers = Table(*heads, box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for worker in at_work(found.run):
        job = f"{worker.task}, {worker.seconds:.3g} s" + (f", {worker.ago_s:.0f} s before" if worker.ago_s > 1 else "")
        workers.add_row(worker.worker, worker.node, f"{worker.share:.0%}", job)
    waiting = [Text(found.waiting, "dim")] if found.waiting else []
    return Group(head, *(table for table in (curves, workers) if table.row_count), *waiting)


def several(runs: RunSet, width: int, height: int) -> tuple[RenderableType, bool]:
    """Returns a line for each of several runs, those that go on first, as many as there is room for."""
    names, found = labels(runs), glances(runs.runs)
    found.sort(key=lambda one: not one.goes_on)
    states = Counter(one.standing for one in found)
    head = Text(f"{len(found)} runs: " + ", ".join(f"{number} {state}" for state, number in states.items()), "bold")
    table = Table.grid(padding=(0, 2))
    room = max(height - 3, 1)
    for one_run in found[:room]:
        curve = one_run.curves[0] if one_run.curves else None
        line = Text(sparkline(curve.values, width // 4) if curve else "", "cyan")
        last = f"{curve.label} {curve.values[-1]:.4g}" if curve else ""
        table.add_row(Text(names[one_run.run.id]), _status(one_run.standing), one_run.progress, line, last)
    rest = [Text(f"and {len(found) - room} more", "dim")] if len(found) > room else []
    return Group(head, table, *rest), any(one.goes_on for one in found)


def sparkline(values: Sequence[float], width: int) -> str:
    """Draws finite values as blocks, from the lowest to the highest, in at most `width` letters: those of more values
    are means of neighbours."""
    means = list(_means([value for value in values if abs(value) < float("inf")], width))
    low, high = min(means, default=0.0), max(means, default=0.0)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((value - low) * scale)] for value in means)


def _means(values: Sequence[float], count: int) -> Iterator[float]:
    count = min(count, len(values))
    for place in range(count):
        part = values[place * len(values) // count : (place + 1) * len(values) // count]
        yield sum(part) / len(part)


def _status(standing: Status) -> Text:
    return Text(standing, standing.colour)
