"""The sections on columns of tables: what training reported of the updates that were used, and algorithms' own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow.compute as pc

from results.groups import Groups
from results.own_columns import OWN
from results.report.draw import lines
from results.report.frames import left_out, quantiles
from results.report.penalties import penalties
from results.report.picture import Picture
from results.report.section import Section
from results.schemas import TABLES

_SHOWN = {
    "loss_before": "Loss before training",
    "loss_after": "Loss after training",
    "local_steps": "Local steps",
    "weight": "Weight in the server's sum",
    "residual": "Residual of the local problem",
    "tolerance": "Tolerance of the local problem",
    "penalty": "Penalty of ADMM",
}


def updates(groups: Groups) -> Section | None:
    """Returns the section; None if no update was used, or nothing was reported of any."""
    pictures = list(_pictures(groups, "updates", _SHOWN, "updates", pc.field("status") == "used"))
    if not pictures:
        return None
    text = (
        "The updates that were used, of all runs of a group together. Line: median. Band: from their 10 % to their "
        "90 % quantile."
    )
    return Section("updates", "Updates", text, [*pictures, *penalties(groups)])


def own_columns(groups: Groups) -> Section | None:
    """Returns the section on the columns that algorithms define themselves; None if there is no such column."""
    pictures: list[Picture] = []
    for table in OWN:
        names = [name for name in groups.runs.schema(table).names if name not in TABLES[table].names]
        titles = {name: f"{name.replace('_', ' ').capitalize()} of {table}" for name in names}
        pictures += _pictures(groups, table, titles, f"own-{table}") if titles else ()
    if not pictures:
        return None
    text = (
        "Numbers that the algorithms logged, of all runs of a group together. Line: median over the rows of a round or "
        "stretch of time. Band: from their 10 % to their 90 % quantile."
    )
    return Section("own-columns", "The algorithms' own columns", text, pictures)


def _pictures(
    groups: Groups, table: str, titles: Mapping[str, str], prefix: str, rows: pc.Expression | None = None
) -> Iterator[Picture]:
    """Yields a figure for each of these columns that holds numbers. titles: by column. rows: those that count."""
    frame, captions = groups.frame(table, [groups.axis, *titles], rows), left_out(groups, table, [*titles], rows)
    for name, title in titles.items():
        found, label = quantiles(frame, groups.axis, name, 0.1, 0.5, 0.9), name.replace("_", " ")
        if len(found):
            file = f"{prefix}-{name.replace('_', '-')}"
            yield lines(groups, found, file, title, captions[name], label, 0.5, 0.1, 0.9)
