"""A section of the report, as data: which columns of which table are drawn, of which rows, and how."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from matplotlib import rc_context
from matplotlib.figure import Figure

from results.drawing import FONT, RC, evaluated, legend_below
from results.groups import Groups
from results.schemas import TABLES

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.compute as pc
    from matplotlib.axes import Axes

Draw: TypeAlias = "Callable[[Axes, Groups, pd.DataFrame, str], str | None]"
"""Draws a column of rows on axes, and returns a caption. The rows have `group`, the place of the group that their run
belongs to; all rows are of one run where a section shows single runs."""

EVALUATED = "evaluated"
"""Stands for a table: the evaluations of the global model or of all peers together, with what was spent by then."""
WIDTH = 5.0  # inches


@dataclass(frozen=True)
class Section:
    """A section of the page: a figure for each column and each combination of values of the columns `by`.

    It is left out where the runs have no rows for it.
    """

    name: str
    """Its id in the page, with which the names of its figures begin."""
    title: str
    text: str
    table: str
    """One of the tables of a run, or EVALUATED."""
    columns: tuple[str, ...]
    """Each has a figure. "own" stands for the columns of the algorithms' own."""
    draw: Draw
    by: tuple[str, ...] = ()
    """Columns each of whose values has its own figure."""
    rows: pc.Expression | None = None
    """Which rows count; by default all."""
    further: tuple[str, ...] = ()
    """Other columns that are needed to draw."""
    single: bool = False
    """Whether a figure shows the first run of a group, for as many groups as reports show single runs of."""
    height: float = 2.6
    """Of a figure, in inches."""


@dataclass(frozen=True)
class Picture:
    """A figure of the page."""

    name: str
    """The name of its file. No other figure of the report has it."""
    title: str
    caption: str
    svg: str = field(repr=False)

    @property
    def uri(self) -> str:
        """The figure's file as a data URI."""
        return "data:image/svg+xml," + quote(self.svg, safe=" /:;,()=")


def pictures(section: Section, groups: Groups) -> Iterator[Picture]:
    """Yields the figures of a section."""
    names = groups.runs.schema(section.table).names if section.table in TABLES else []
    # The place of a client's group in `clients` has no quantiles.
    own = [name for name in names if name not in TABLES[section.table].names and name != "group"]
    columns = own if section.columns == ("own",) else section.columns
    if not columns:
        return
    if section.table == EVALUATED:
        frame = evaluated(groups)
    else:
        moment = [name for name in ("round", "virtual_time") if name in names]
        wanted = dict.fromkeys([*moment, *section.by, *section.further, *columns])
        frame = groups.frame(section.table, [*wanted], section.rows)
    if section.single:
        yield from _of_single_runs(section, groups, frame, columns[0])
        return
    for values, some in _by(section, frame):
        for column in columns:
            rows = some[some[column].notna()]
            if len(rows) and (column != "seconds" or rows[column].any()):
                parts = [*map(str, values), *([column] if len(columns) > 1 or section.columns == ("own",) else [])]
                title = ", ".join(part.replace("_", " ") for part in parts) or section.title
                yield picture(section, groups, rows, column, "-".join([section.name, *parts]), title)


def _of_single_runs(section: Section, groups: Groups, frame: pd.DataFrame, column: str) -> Iterator[Picture]:
    """Yields a figure of the first run of each group that is shown; of runs with equal rows, of the first one."""
    before: list[pd.DataFrame] = []
    for values, some in _by(section, frame):
        for group in groups.shown:
            rows = some[some["run"] == group.first.id]
            plain = rows.drop(columns=["run", "group"]).reset_index(drop=True)
            if len(rows) and not any(plain.equals(other) for other in before):
                before.append(plain)
                name = "-".join([section.name, *map(str, values), str(group.place)])
                yield picture(section, groups, rows, column, name, ", ".join([*map(str, values), group.label]))


def _by(section: Section, frame: pd.DataFrame) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Returns the rows of each combination of values of the columns `by`, with these values."""
    return frame.groupby([*section.by], observed=True) if section.by else [((), frame)]


def picture(section: Section, groups: Groups, rows: pd.DataFrame, column: str, name: str, title: str) -> Picture:
    """Draws a figure as SVG."""
    with rc_context(RC):
        figure = Figure(figsize=(WIDTH, section.height), layout="constrained")
        axes = figure.subplots()
        caption = section.draw(axes, groups, rows, column)
        legend_below(axes)
        text = io.StringIO()
        dates: Any = {"Date": None, "Creator": None}
        figure.savefig(text, format="svg", metadata=dates)
    svg = text.getvalue().replace("'DejaVu Sans'", FONT)  # a font of the reader's system
    return Picture(re.sub(r"[^\w-]+", "-", name.replace("_", "-")), title, caption or "", svg)
