"""The command `ls`: the runs and sweeps in a folder."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from raysim.cli.bad_input import refuse, refusing_wrong_runs
from raysim.cli.options import FolderOfRuns
from results import load
from results.listing import lines_below
from results.terminal import Terminal


def ls(
    folder: FolderOfRuns = Path("runs"),
) -> None:
    """List the runs in a folder, runs/ by default, with a line for each sweep: how far they are, and how good."""
    with refusing_wrong_runs() as notes:
        reasons: list[str] = []
        found = lines_below(folder.resolve(), load(folder.resolve(), damaged=notes), notes, reasons)
        if not found.lines:
            refuse(*notes)
        console = Terminal()
        console.print(listed(*found))
        for reason in reasons:
            console.print(reason, markup=False, highlight=False, soft_wrap=True)


def listed(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Table:
    """Returns lines as a table for the terminal, without the columns in which all are empty."""
    rows = list(lines)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    shown = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    for place in shown:
        side: JustifyMethod = "left" if place < 3 else "right"
        # Texts and ranges may fold; the first column is to be copied as one word, and rounds and times stay whole.
        table.add_column(heads[place], overflow="fold", justify=side, no_wrap=place in (0, 3, 4))
    for row in rows:
        table.add_row(*(Text(row[place]) for place in shown))
    return table
