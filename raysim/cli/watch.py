"""The commands `ls` and `watch`: the runs in a folder, and how they go on, in the terminal."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from raysim.cli.bad_input import refusing_wrong_runs
from raysim.cli.options import FolderOfRuns, to_location
from results.listing import labels, lines, states
from results.load import Folder, readable
from results.reader import NoRuns
from results.terminal import Terminal
from results.texts import count
from results.views import View, workers

_BLOCKS = "▁▂▃▄▅▆▇█"
_CURVES = 6  # of a run that are shown


def ls(
    folder: FolderOfRuns = Path("runs"),
) -> None:
    """List the runs in a folder, runs/ by default, with a line for each sweep: how far they are, and how good."""
    with refusing_wrong_runs():
        views = Folder(folder).look()
        readable(views)
    heads, rows, reasons = lines(views)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    shown = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    for place in shown:
        # Texts and ranges may fold; the first column is to be copied as one word, and rounds and times stay whole.
        side = "left" if place < 3 else "right"
        table.add_column(heads[place], overflow="fold", justify=side, no_wrap=place in (0, 3, 4))  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(row[place]) for place in shown))
    console = Terminal()
    console.print(table)
    for reason in reasons:
        console.print(reason, markup=False, highlight=False, soft_wrap=True)


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
    console, runs = Terminal(), Folder(folder)
    with refusing_wrong_runs():
        if once or not console.is_interactive:
            console.print(shown(readable(runs.look()), console))
            return
        try:
            with Live(console=console, auto_refresh=False) as live:
                while True:
                    try:
                        views = readable(runs.look())
                        live.update(shown(views, console), refresh=True)
                        if not any(one.status.goes_on for one in views):
                            return
                    except NoRuns:
                        live.update(Text(f"waits for a first run in {folder}; Ctrl-C ends this"), refresh=True)
                    time.sleep(every)
        except KeyboardInterrupt:  # the runs go on
            raise typer.Exit(130) from None


def shown(views: Sequence[View], console: Terminal) -> RenderableType:
    """Returns what there is to see of runs in a terminal of this size."""
    if len(views) == 1:
        return _one(views[0], console.width)
    return _several(sorted(views, key=lambda one: not one.status.goes_on), console.width, max(console.height - 3, 1))


def _one(found: View, width: int) -> RenderableType:
    """Returns a run: how far it is, its curves, its workers, and what it waits for."""
    assert found.run
    head = Text.assemble((found.run.id, "bold"), "  ", (found.status, found.status.colour))
    head.append(f"  round {found.progress}  t={found.virtual_time:.6g}")
    curves = Table.grid(padding=(0, 2))
    for curve in found.curves[:_CURVES]:
        curves.add_row(Text(curve.label), Text(sparkline(curve.values, width // 2), "cyan"), f"{curve.values[-1]:.4g}")
    heads = ("worker", "node", "busy", "last job")
    table = Table(*heads, box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for worker in workers(found.run):
        job = f"{worker.task}, {worker.seconds:.3g} s" + (f", {worker.ago_s:.0f} s before" if worker.ago_s > 1 else "")
        table.add_row(worker.worker, worker.node, f"{worker.share:.0%}", job)
    remark = [Text(found.remark, "dim")] if found.remark else []
    return Group(head, *(part for part in (curves, table) if part.row_count), *remark)


def _several(views: Sequence[View], width: int, room: int) -> RenderableType:
    """Returns a line for each of several runs, as many as there is room for."""
    names = labels(views)
    table = Table.grid(padding=(0, 2))
    for one in views[:room]:
        line = Text(sparkline(one.curves[0].values, width // 4) if one.curves else "", "cyan")
        status = Text(one.status, one.status.colour)
        table.add_row(Text(names[one.path]), status, one.progress, line, " ".join(one.last).strip())
    rest = [Text(f"and {len(views) - room} more", "dim")] if len(views) > room else []
    return Group(Text(f"{count(len(views), 'run')}: {states(views)}", "bold"), table, *rest)


def sparkline(values: Sequence[float], width: int) -> str:
    """Draws finite values as blocks, from the lowest to the highest, in at most `width` letters: those of more values
    are means of neighbours."""
    finite = [value for value in values if abs(value) < float("inf")]
    number = min(width, len(finite))
    parts = [finite[k * len(finite) // number : (k + 1) * len(finite) // number] for k in range(number)]
    means = [sum(part) / len(part) for part in parts]
    low, high = min(means, default=0.0), max(means, default=0.0)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((value - low) * scale)] for value in means)
