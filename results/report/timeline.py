"""The section on which client was at work when, at the start of a run."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes

from results.groups import Groups, RunGroup
from results.reader import Run
from results.report import style
from results.report.picture import Picture, picture
from results.report.section import Section, panels

_CLIENTS = 40  # shown, at most
_DISPATCHES = 4000  # the first of a run, from which those shown are taken
_STEPS = 10  # the figure goes at least as far as so many server steps
_ROW = 0.13  # height of a client's row, in inches
_DASHES = {"used": "-", "discarded": (0, (4, 1.5)), "dropped": (0, (1, 1)), "unfinished": (0, (6, 1.5, 1, 1.5))}
_STRENGTH = {"used": 1.0, "discarded": 0.75, "dropped": 0.6, "unfinished": 0.5}
_COLUMNS = ["client", "dispatch", "status", "dispatched_at", "arrived_at", "virtual_time"]


def timeline(groups: Groups) -> Section | None:
    """Returns the section; None if no dispatch has ended."""
    text = (
        f"{groups.representatives}Each bar is a dispatch, from when the client received the model until its update "
        "arrived: at a dot, or at a cross if the update was discarded. Without a server, it is a peer's training. The "
        f"first {_CLIENTS} clients are shown, in order of their first dispatch. The short lines at the top are the "
        "server's steps, or the ends of the peers' rounds."
    )
    details = panels(groups, lambda group: _pictures(groups, group, group.first))
    return Section("timeline", "Timeline of the start", text, details=details) if details else None


def _pictures(groups: Groups, group: RunGroup, run: Run) -> Iterator[Picture]:
    updates = run.table("updates", _COLUMNS, pc.field("dispatch") < _DISPATCHES).to_pandas().sort_values("dispatch")
    if updates.empty:
        return
    clients = updates["client"].drop_duplicates()[:_CLIENTS]
    updates = updates[updates["client"].isin(clients)]
    updates["ends"] = updates["arrived_at"].fillna(updates["virtual_time"])
    steps = run.table("steps", ["virtual_time"])["virtual_time"].to_numpy()
    first = updates.drop_duplicates("client")["ends"]
    end = max([first.quantile(0.75), *steps[_STEPS - 1 : _STEPS]]) or 1.0
    window = updates[updates["dispatched_at"] <= end]
    rows = {client: row for row, client in enumerate(clients)}

    def draw(axes: Axes) -> None:
        _bars(axes, group.look.hue, window.assign(row=window["client"].map(rows)))
        axes.vlines(steps[steps <= end], -1.6, -0.8, color=style.INK[0], linewidth=0.8)
        axes.set(xlabel=f"virtual time{groups.unit}", ylabel="client", xlim=(-0.015 * end, 1.015 * end))
        axes.set_ylim(len(rows) - 0.4, -1.8)
        axes.set_yticks(list(rows.values()), [str(client) for client in rows], fontsize=7.5)
        axes.tick_params(axis="y", length=0)

    dispatches = f"{len(window)} dispatches of {len(rows)} clients"
    caption = f"{run.id}: {dispatches}, {int((steps <= end).sum())} steps are shown."
    yield picture(f"timeline-{group.place}", "Dispatches and arrivals", caption, draw, 0.8 + _ROW * (len(rows) + 2))


def _bars(axes: Axes, hue: int, window: pd.DataFrame) -> None:
    for status in style.STATUS:
        of_status = window[window["status"] == status]
        if of_status.empty:
            continue
        colour, rows = style.colour(hue), of_status["row"]
        shape: dict[str, Any] = {"linestyle": _DASHES[status], "linewidth": 3, "color": colour, "label": status}
        shape["alpha"] = _STRENGTH[status]
        axes.hlines(rows, of_status["dispatched_at"], of_status["ends"], **shape)
        there = of_status[of_status["arrived_at"].notna() | (of_status["status"] == "discarded")]
        marker = "x" if status == "discarded" else "o"
        axes.plot(there["ends"], there["row"], marker, color=colour, markersize=4)
