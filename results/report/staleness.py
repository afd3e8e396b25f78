"""The section on the fate of dispatches, and on the staleness of the updates that were used."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from results.groups import Groups
from results.report import style
from results.report.draw import band, whole_numbers
from results.report.frames import by_group
from results.report.picture import Picture, picture
from results.report.section import Section
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
    pictures = [_counts(groups, updates)]
    if used["staleness"].any():
        pictures.insert(0, _histogram(groups, used))
    return Section("staleness", "Dispatches and staleness", _TEXT, pictures)


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
    shares = 100 * counts.div(counts.sum(axis="columns"), axis="index")

    def draw(axes: Axes) -> None:
        start = np.zeros(len(shares))
        for number, status in enumerate(style.STATUS):
            if status not in shares:
                continue
            for row, place in enumerate(shares.index):
                look = style.pattern(groups.groups[place].look.hue, number)
                axes.barh(row, shares[status].iloc[row], 0.42, start[row], **look)
            start += shares[status].to_numpy()
            axes.barh(np.nan, np.nan, label=status, **style.pattern(None if len(groups) > 1 else 0, number))
        for row, of_group in enumerate(counts.to_dict("records")):
            told = ", ".join(f"{of_group[status]:,} {status}" for status in style.STATUS if of_group.get(status))
            group = cut(groups.label(counts.index[row]) or "", _LETTERS - len(told))
            axes.text(0, row - 0.28, f"{group}: {told}" if group else told, va="bottom", fontsize=8.5, in_layout=False)
        axes.set(xlabel="% of dispatches", xlim=(0, 100), yticks=[], ylim=(len(shares) - 0.6, -0.85))
        axes.spines["left"].set_visible(False)

    caption = "Used by a step; discarded for being late; dropped, never reported; unfinished when the run ended."
    return picture("updates-by-status", "What became of dispatches", caption, draw, 0.9 + _ROW * len(shares))
