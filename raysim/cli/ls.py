"""The command `ls`: the runs and sweeps in a folder."""

from pathlib import Path

from rich.table import Table
from rich.text import Text

from raysim.cli.bad_input import refusing_wrong_runs
from raysim.cli.options import FolderOfRuns
from results.listing import lines_below
from results.load import Folder, readable
from results.terminal import Terminal


def ls(
    folder: FolderOfRuns = Path("runs"),
) -> None:
    """List the runs in a folder, runs/ by default, with a line for each sweep: how far they are, and how good."""
    with refusing_wrong_runs():
        views = Folder(folder).look()
        readable(views)
    (heads, rows), reasons = lines_below(views)
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
