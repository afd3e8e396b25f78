"""The command `columns`: the data dictionary of the tables that a run leaves."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from raysim.cli.bad_input import refuse
from raysim.parts.errors import nearest
from results import TABLES
from results.keys import ORIGIN
from results.schemas import columns_of, description_of
from results.terminal import Terminal

OWN = {  # how an algorithm adds own columns, by table
    "updates": "what `update`, `local` and `mix` give to `task.log(name=number)`",
    "steps": "what `step` gives to `task.log(name=number)`",
    "coefficients": "`own` of a `SearchResult`",
}


def columns(
    table: Annotated[
        str | None, typer.Argument(help="A table, such as updates. By default: all of them.", show_default=False)
    ] = None,
) -> None:
    """Tell what each column of a run's tables means: its type, its unit, and when it is null."""
    if table is not None and table not in TABLES:
        refuse(f"columns: must be one of {', '.join(TABLES)}, got {table!r}{nearest(table, list(TABLES))}")
    console = Terminal()
    for place, name in enumerate([table] if table else TABLES):
        console.print(*["\n"] * bool(place), f"[bold]{name}[/]: {description_of(name)}\n", _columns(name), sep="")
        if name in OWN:
            console.print(f"\nAlgorithms add columns of their own: {OWN[name]}.", highlight=False)
    console.print(f"\nTables of forks are read with two more columns: {' and '.join(ORIGIN)}.", highlight=False)


def _columns(name: str) -> Table:
    shown = Table(Column(no_wrap=True), Column(), box=None, show_header=False, padding=(0, 2, 0, 0))
    for column in columns_of(name):
        kind = column.type + (", or null" if column.nullable else "") + (f" ({column.unit})" if column.unit else "")
        differs = " It differs between two runs of one scenario." if column.wall else ""
        shown.add_row(f"[bold]{column.name}", escape(f"{kind}\n{column.description}{differs}"))
    return shown
