"""The section on the coefficients that a server searches for its anchors (Feddle)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from results.groups import Groups
from results.report import style
from results.report.draw import band, whole_numbers
from results.report.frames import gaps, quantiles, with_nan, without
from results.report.picture import Picture, picture
from results.report.section import Panel, Section

if TYPE_CHECKING:
    import pandas as pd

_DOTS = 400  # in a figure, at most: each makes the page longer


def coefficients(groups: Groups) -> Section | None:
    """Returns the section; None if no server searched for coefficients."""
    frame = groups.frame("coefficients", ["round", "coefficient", "fallback", "norm"])
    panels = [
        Panel(group.label, list(_pictures(group.place, frame[frame["group"] == group.place])))
        for group in groups.shown
        if (frame["group"] == group.place).any()
    ]
    text = (
        "The server merges the updates that it keeps, its anchors, with coefficients that it searches on its own data. "
        "The fallback is where a search starts and what it is pulled back to. All runs of a group are taken together."
    )
    return Section("coefficients", "Coefficients", text, details=panels) if panels else None


def _pictures(place: int, frame: pd.DataFrame) -> Iterator[Picture]:
    found, fallback = quantiles(frame, "coefficient", 0.0, 0.5, 1.0), quantiles(frame, "fallback", 0.5)

    def over_rounds(axes: Axes) -> None:
        if len(found):
            label = "coefficients: median, and from smallest to largest"
            band(axes, 0, label, found["round"], found[0.5], found[0.0], found[1.0])
        if len(fallback):
            band(axes, 1, "fallbacks: median", fallback["round"], fallback[0.5])
        axes.set(xlabel="round", ylabel="coefficient")
        whole_numbers(axes)

    finite = {name: np.isfinite(frame[name]) for name in ("coefficient", "fallback", "norm")}
    lost = sum(len(frame) - int(finite[name].sum()) for name in ("coefficient", "fallback"))
    yield picture(f"coefficients-{place}", "Coefficients over rounds", without(lost), over_rounds)
    negative = (frame["coefficient"] < 0).astype(float).where(frame["coefficient"].notna()).groupby(frame["round"])
    share = 100 * with_nan(negative.mean().to_frame(), negative)["coefficient"]

    def negatives(axes: Axes) -> None:
        band(axes, 1, None, share.index, share)
        axes.set(xlabel="round", ylabel="% below zero", ylim=(-2, 102))
        whole_numbers(axes)

    caption = "Share of the coefficients of each round." + gaps(share)
    yield picture(f"coefficients-negative-{place}", "Negative coefficients", caption, negatives)
    some = frame[finite["coefficient"] & finite["norm"]]
    some = some.iloc[np.unique(np.linspace(0, len(some) - 1, min(_DOTS, len(some))).astype(int))]

    def against_norms(axes: Axes) -> None:
        axes.plot(some["norm"], some["coefficient"], ".", color=style.colour(0), markersize=3, alpha=0.5)
        axes.set(xlabel="norm of the anchor", ylabel="coefficient")

    which = "All" if len(some) == len(frame) else f"{len(some):,} of {len(frame):,}"
    caption = f"{which} coefficients of all rounds."
    yield picture(f"coefficients-norm-{place}", "Coefficients against norms", caption, against_norms)
