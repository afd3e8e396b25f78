"""The section on what training reported of the updates that were used."""

from __future__ import annotations

import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes

from results.groups import Groups
from results.report.draw import first_axis, series, wide_scale
from results.report.frames import left_out, quantiles
from results.report.penalties import penalties
from results.report.picture import Picture, picture
from results.report.section import Section

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
    used = pc.field("status") == "used"
    frame = groups.frame("updates", [groups.axis, *_SHOWN], used)
    captions = left_out(groups, "updates", [*_SHOWN], used)
    found = {name: quantiles(frame, groups.axis, name, 0.1, 0.5, 0.9) for name in _SHOWN}
    pictures = [_over_rounds(groups, table, name, captions[name]) for name, table in found.items() if len(table)]
    if not pictures:
        return None
    text = (
        "The updates that were used, of all runs of a group together. Line: median. Band: from their 10 % to their "
        "90 % quantile."
    )
    return Section("updates", "Updates", text, [*pictures, *penalties(groups)])


def _over_rounds(groups: Groups, table: pd.DataFrame, name: str, caption: str) -> Picture:
    def draw(axes: Axes) -> None:
        series(axes, groups, table, groups.axis, 0.5, 0.1, 0.9)
        axes.set_ylabel(name.replace("_", " "))
        first_axis(axes, groups)
        wide_scale(axes, table[0.5])

    return picture(f"updates-{name.replace('_', '-')}", _SHOWN[name], caption, draw)
