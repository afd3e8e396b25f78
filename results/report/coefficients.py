"""The section on the coefficients that a server searches for its anchors (Feddle)."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from results.groups import Groups, Look, RunGroup
from results.report import style
from results.report.draw import band, first_axis
from results.report.frames import gaps, quantiles, with_nan, without
from results.report.picture import Picture, picture
from results.report.section import Section, panels

_DOTS = 400  # in a figure, at most: each makes the page longer


def coefficients(groups: Groups) -> Section | None:
    """Returns the section; None if no server searched for coefficients."""
    frame = groups.frame("coefficients", ["round", "virtual_time", "coefficient", "fallback", "norm"])
    details = panels(groups, lambda group: _pictures(groups, group, frame[frame["group"] == group.place]))
    text = (
        "The server merges the updates that it keeps, its anchors, with coefficients that it searches on its own data. "
        "The fallback is where a search starts and what it is pulled back to. All runs of a group are taken together."
    )
    return Section("coefficients", "Coefficients", text, details=details) if details else None


def _pictures(groups: Groups, group: RunGroup, frame: pd.DataFrame) -> Iterator[Picture]:
    if frame.empty:
        return
    axis, place, hue = groups.axis, group.place, group.look.hue
    found, fallback = quantiles(frame, axis, "coefficient", 0.0, 0.5, 1.0), quantiles(frame, axis, "fallback", 0.5)

    def over_rounds(axes: Axes) -> None:
        if len(found):
            label = "coefficients: median, and from smallest to largest"
            band(axes, Look(hue, 0), label, found[axis], found[0.5], found[0.0], found[1.0])
        if len(fallback):
            band(axes, Look(hue, 1), "fallbacks: median", fallback[axis], fallback[0.5])
        axes.set_ylabel("coefficient")
        first_axis(axes, groups)

    finite = {name: np.isfinite(frame[name]) for name in ("coefficient", "fallback", "norm")}
    lost = sum(len(frame) - int(finite[name].sum()) for name in ("coefficient", "fallback"))
    yield picture(f"coefficients-{place}", "Coefficients as the run goes on", without(lost), over_rounds)
    negative = (frame["coefficient"] < 0).astype(float).where(frame["coefficient"].notna()).groupby(frame["round"])
    share = 100 * with_nan(negative.mean().to_frame(), negative)["coefficient"]
    at = frame.groupby("round")[axis].mean()

    def negatives(axes: Axes) -> None:
        band(axes, Look(hue, 0), None, at, share)
        axes.set(ylabel="% below zero", ylim=(-2, 102))
        first_axis(axes, groups)

    caption = "Share of the coefficients of each round." + gaps(share)
    yield picture(f"coefficients-negative-{place}", "Negative coefficients", caption, negatives)
    some = frame[finite["coefficient"] & finite["norm"]]
    some = some.iloc[np.unique(np.linspace(0, len(some) - 1, min(_DOTS, len(some))).astype(int))]

    def against_norms(axes: Axes) -> None:
        axes.plot(some["norm"], some["coefficient"], ".", color=style.colour(hue), markersize=3, alpha=0.5)
        axes.set(xlabel="norm of the anchor", ylabel="coefficient")

    which = "All" if len(some) == len(frame) else f"{len(some):,} of {len(frame):,}"
    caption = f"{which} coefficients of all rounds."
    yield picture(f"coefficients-norm-{place}", "Coefficients against norms", caption, against_norms)
