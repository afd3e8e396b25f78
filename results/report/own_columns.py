"""The section on the columns that algorithms define themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes

from results.groups import Groups
from results.own_columns import OWN
from results.report.draw import first_axis, series, wide_scale
from results.report.frames import left_out, quantiles
from results.report.picture import Picture, picture
from results.report.section import Section
from results.schemas import TABLES

_OF = {"steps": "of steps", "updates": "of updates", "coefficients": "of coefficients"}


def own_columns(groups: Groups) -> Section | None:
    """Returns the section; None if there is no such column."""
    pictures = [picture for table in OWN for picture in _pictures(groups, table)]
    if not pictures:
        return None
    text = (
        "Numbers that the algorithms logged, of all runs of a group together. Line: median over the rows of a round or "
        "stretch of time. Band: from their 10 % to their 90 % quantile."
    )
    return Section("own-columns", "The algorithms' own columns", text, pictures)


def _pictures(groups: Groups, table: str) -> Iterator[Picture]:
    names = [name for name in groups.runs.schema(table).names if name not in TABLES[table].names]
    if not names:
        return
    frame, captions = groups.frame(table, [groups.axis, *names]), left_out(groups, table, names)
    for name in names:
        found = quantiles(frame, groups.axis, name, 0.1, 0.5, 0.9)
        if len(found):
            yield _picture(groups, found, table, name, captions[name])


def _picture(groups: Groups, found: pd.DataFrame, table: str, name: str, caption: str) -> Picture:
    def draw(axes: Axes) -> None:
        series(axes, groups, found, groups.axis, 0.5, 0.1, 0.9)
        axes.set_ylabel(name.replace("_", " "))
        first_axis(axes, groups)
        wide_scale(axes, found[0.5])

    title = f"{name.replace('_', ' ').capitalize()} {_OF[table]}"
    return picture(f"own-{table}-{name.replace('_', '-')}", title, caption, draw)
