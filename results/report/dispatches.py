"""The sections on dispatches: what became of them, the staleness of updates, and who was at work when at the start."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from results import style
from results.drawing import band, by_group, label_above, whole_numbers
from results.groups import Groups, RunGroup
from results.picture import Picture, picture
from results.report.section import Section, of_each_group
from results.texts import cut

_TEXT = (
    "A dispatch sends the model to a client. An update's staleness is how old that model was when the update arrived. "
    "For peers, a dispatch is a training, and staleness is the mean age of the messages mixed after it. All runs of a "
    "group are taken together."
)
_BINS = 40
_FEW = 6  # groups whose means and largest values a caption tells
_APART = 2.5  # points between the lines of groups, so that none hides another
_LETTERS = 66  # of a group's label and what became of its dispatches
_ROW = 0.42  # height of a group's bar and label, in inches


def staleness(groups: Groups) -> Section | None:
    """Returns the section; None if no dispatch has ended."""
    updates = groups.frame("updates", ["status", "staleness"])
    if updates.empty:
        return None
    used = updates[updates["status"] == "used"]
    pictures = [_histogram(groups, used)] if used["staleness"].any() else []
    return Section("staleness", "Dispatches and staleness", _TEXT, [*pictures, _counts(groups, updates)])


def _histogram(groups: Groups, used: pd.DataFrame) -> Picture:
    top = used["staleness"].max()
    whole = (used["staleness"] % 1 == 0).all()
    width = -(-(top + 1) // _BINS) if whole else top / _BINS
    edges = np.arange(-0.5 * whole, top + width, width)
    middles = (edges[:-1] + edges[1:]) / 2

    def draw(axes: Axes) -> None:
        for place, of_group in by_group(used):
            counts, _ = np.histogram(of_group["staleness"], edges)
            shares = 100 * counts / counts.sum()
            if len(groups) == 1:
                axes.bar(middles, shares, 0.9 * width, color=style.colour(0))
            else:
                end = int(counts.nonzero()[0][-1]) + 2  # else its zeros would cover others' values
                band(axes, groups.groups[place].look, groups.label(place), middles[:end], shares[:end])
                aside = (place - (len(groups) - 1) / 2) * min(_APART, 10 / len(groups)) / 72
                axes.lines[-1].set_transform(axes.transData + ScaledTranslation(aside, 0, axes.figure.dpi_scale_trans))
        axes.set(xlabel="staleness", ylabel="% of the updates used")
        axes.set_ylim(0)
        if whole:
            whole_numbers(axes)

    beside = "" if len(groups) == 1 else " Lines stand a little beside each other, so that all are seen."
    caption = f"{_means(groups, used)} Each bar or point covers {width:.3g}.{beside}"
    return picture("staleness", "Staleness of the updates used", caption, draw)


def _means(groups: Groups, used: pd.DataFrame) -> str:
    """Returns a sentence with the mean and the largest staleness of each group; of many groups, with their range."""
    found = used.groupby("group")["staleness"].agg(["mean", "max"])
    if len(groups) == 1:
        return f"Mean {found['mean'].iloc[0]:.3g}, largest {found['max'].iloc[0]:g}."
    if len(found) > _FEW:
        return f"Means from {found['mean'].min():.3g} to {found['mean'].max():.3g}, largest {found['max'].max():g}."
    each = (f"{groups.label(int(str(place)))}: {row['mean']:.3g}, {row['max']:g}" for place, row in found.iterrows())
    return f"Mean and largest: {'; '.join(each)}."


def _counts(groups: Groups, updates: pd.DataFrame) -> Picture:
    counts = updates.groupby(["group", "status"], observed=True).size().unstack(fill_value=0)
    counts = counts.reindex(columns=[status for status in style.STATUS if status in counts])
    shares = 100 * counts.div(counts.sum(axis="columns"), axis="index")
    starts = shares.cumsum(axis="columns") - shares

    def draw(axes: Axes) -> None:
        for status in counts:
            number = style.STATUS.index(str(status))
            for row, place in enumerate(counts.index):
                look = style.pattern(groups.groups[place].look.hue, number)
                axes.barh(row, shares[status].iloc[row], 0.42, starts[status].iloc[row], **look)
            axes.barh(np.nan, np.nan, label=str(status), **style.pattern(None if len(groups) > 1 else 0, number))
        for row, (place, of_group) in enumerate(counts.iterrows()):
            what = ", ".join(f"{number:,} {status}" for status, number in of_group.items() if number)
            group = cut(groups.label(int(str(place))) or "", _LETTERS - len(what))
            label_above(axes, row, f"{group}: {what}" if group else what)
        axes.set(xlabel="% of dispatches", xlim=(0, 100), yticks=[], ylim=(len(shares) - 0.6, -0.85))

    caption = "Used by a step; discarded for being late; dropped, never reported; unfinished when the run ended."
    return picture("updates-by-status", "What became of dispatches", caption, draw, 0.9 + _ROW * len(shares))


# --- the start of a run -----------------------------------------------------------------------------------------------

_CLIENTS = 40  # shown, at most
_DISPATCHES = 4000  # the first of a run, from which those shown are taken
_STEPS = 10  # the figure goes at least as far as so many server steps
_CLIENT = 0.13  # height of a client's row, in inches
_LINES: dict[str, Any] = {  # by status: dashes and strength
    "used": ("-", 1.0),
    "discarded": ((0, (4, 1.5)), 0.75),
    "dropped": ((0, (1, 1)), 0.6),
    "unfinished": ((0, (6, 1.5, 1, 1.5)), 0.5),
}
_COLUMNS = ["client", "dispatch", "status", "dispatched_at", "arrived_at", "virtual_time"]


def _start(groups: Groups, group: RunGroup) -> Iterator[Picture]:
    run = group.first
    updates = run.table("updates", _COLUMNS, pc.field("dispatch") < _DISPATCHES).to_pandas().sort_values("dispatch")
    if updates.empty:
        return
    clients = updates["client"].drop_duplicates()[:_CLIENTS]
    updates = updates[updates["client"].isin(clients)]
    updates["ends"] = updates["arrived_at"].fillna(updates["virtual_time"])
    steps = run.table("steps", ["virtual_time"])["virtual_time"].to_numpy()
    first = updates.drop_duplicates("client")["ends"]
    end = max([first.quantile(0.75), *steps[_STEPS - 1 : _STEPS]]) or 1.0
    rows = {client: row for row, client in enumerate(clients)}
    window = updates[updates["dispatched_at"] <= end].assign(row=updates["client"].map(rows))

    def draw(axes: Axes) -> None:
        for status, (dashes, strength) in _LINES.items():
            of_status = window[window["status"] == status]
            if of_status.empty:
                continue
            shape: dict[str, Any] = {"linestyle": dashes, "alpha": strength, "linewidth": 3, "label": status}
            colour = style.colour(group.look.hue)
            axes.hlines(of_status["row"], of_status["dispatched_at"], of_status["ends"], color=colour, **shape)
            there = of_status[of_status["arrived_at"].notna() | (of_status["status"] == "discarded")]
            axes.plot(there["ends"], there["row"], "x" if status == "discarded" else "o", color=colour, markersize=4)
        axes.vlines(steps[steps <= end], -1.6, -0.8, color=style.INK[0], linewidth=0.8)
        axes.set(xlabel=f"virtual time{groups.unit}", ylabel="client", xlim=(-0.015 * end, 1.015 * end))
        axes.set_ylim(len(rows) - 0.4, -1.8)
        axes.set_yticks(list(rows.values()), [str(client) for client in rows], fontsize=7.5)
        axes.tick_params(axis="y", length=0)

    dispatches = f"{len(window)} dispatches of {len(rows)} clients"
    caption = f"{run.id}: {dispatches}, {int((steps <= end).sum())} steps are shown."
    height = 0.8 + _CLIENT * (len(rows) + 2)
    yield picture(f"timeline-{group.place}", "Dispatches and arrivals", caption, draw, height)


timeline = of_each_group(
    "timeline",
    "Timeline of the start",
    "{shown}Each bar is a dispatch, from when the client received the model until its update arrived: at a dot, or at "
    "a cross if the update was discarded. Without a server, it is a peer's training. The "
    f"first {_CLIENTS} clients are shown, in order of their first dispatch. The short lines at the top are the "
    "server's steps, or the ends of the peers' rounds.",
    _start,
)
