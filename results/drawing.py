"""What figures draw, those of reports as those for papers: learning curves, lines with bands, and axes; and how they
look: colours that stand out on white and on black and for the colour-blind, dashes, and letters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import ArrayLike

from results.groups import Groups
from results.readings import epsilon_of, of_models, readings, with_nan

# Each for white and for black, after Okabe and Ito (2008): blue, vermilion, green, purple, ochre, sky, grey.
SERIES = (
    ("#0072b2", "#5fb0e8"),
    ("#c8500a", "#ff9a57"),
    ("#00805c", "#35cf9f"),
    ("#b0508c", "#e99ccb"),
    ("#8f6b00", "#e8c547"),
    ("#2a93c9", "#a5dcff"),
    ("#6a6a6a", "#b4b4b4"),
)
INK = ("#1c1d1f", "#e8e8e6")
MUTED = ("#5c5f63", "#a8abb0")
GRID = ("#dcdee0", "#3a3d41")
FONT = "system-ui, sans-serif"

_LETTER = 0.62  # how wide a letter is, as a share of the font's size
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))

RC: Any = {  # matplotlib's settings; each version of it declares other types of keys
    "axes.edgecolor": MUTED[0],
    "axes.grid": True,
    "axes.labelcolor": INK[0],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that the layout is the same everywhere
    "font.size": 9.5,
    "grid.color": GRID[0],
    "grid.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "svg.hashsalt": "raysim",
    "text.color": INK[0],
    "text.parse_math": False,
    "xtick.color": MUTED[0],
    "xtick.labelcolor": INK[0],
    "ytick.color": MUTED[0],
    "ytick.labelcolor": INK[0],
}

AXES = {
    "round": "round",
    "virtual_time": "virtual time",
    "bytes": "bytes, up and down",
    "up_bytes": "bytes up",
    "down_bytes": "bytes down",
    "seconds": "real time in seconds",
}
_COSTS = [name for name in AXES if name not in ("round", "virtual_time")]


def evaluated(groups: Groups, subject: str | None = None) -> pd.DataFrame:
    """Returns the evaluations of all runs to draw, with the group's place, and AXES: what had been spent by then; and
    with the run's epsilon, if any run has a finite one.

    subject: client, unseen or peer, whose mean in each run is taken; None: the global model or, in runs without one,
    all peers together, with how far they are apart.
    """
    subjects = [subject] if subject else ["global", "peers"]
    frame = groups.placed(readings(groups.drawn, subjects=subjects, costs=_COSTS))
    epsilons = {run.id: epsilon_of(run) for run in groups.drawn.runs}
    private = any(epsilon is not None and math.isfinite(epsilon) for epsilon in epsilons.values())
    frame = frame.assign(epsilon=frame["run"].map(epsilons) if private else np.nan)
    apart = frame[(frame["subject"] == "peers") & frame["metric"].str.startswith("consensus")]
    return frame if subject else pd.concat([of_models(frame), apart])


def points(groups: Groups, frame: pd.DataFrame) -> pd.DataFrame:
    """Returns one row for each group and round of an evaluated metric; or for each virtual time, where all runs of the
    group were evaluated by it.

    mean, min, max, std and count are those of the value over runs, NaN if one of them has none; AXES are means over
    runs. std is the sample standard deviation, NaN for a single run.
    """
    found = []
    for place, rows in by_group(frame):
        by = rows.groupby(at := groups.groups[place].evaluated_by)
        values = with_nan(by["value"].agg(["mean", "min", "max", "std", "count"]), by["value"])
        axes = by.agg(**{name: (name, "mean") for name in AXES if name != at})
        found.append(values.join(axes).reset_index().assign(group=place))
    return pd.concat(found) if found else frame


def by_group(frame: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yields the place and the rows of each group."""
    for place, rows in frame.groupby("group"):
        yield int(str(place)), rows


def band(axes: Axes, place: int, label: str | None, x: ArrayLike, *lines: ArrayLike) -> None:
    """Draws a line of the group at a place: the first of `lines`. Two more are the edges of a band around it."""
    middle, *edges = lines
    axes.plot(x, middle, label=label, **line_style(place, len(np.asarray(middle))))
    if edges:
        low, high = edges
        axes.fill_between(x, low, high, color=colour(place), alpha=0.15, linewidth=0)


def lines(axes: Axes, groups: Groups, table: pd.DataFrame, x: str, columns: Sequence[Any]) -> None:
    """Draws a line for each group of a table. The first column is the line; two more are the edges of a band."""
    for place, rows in by_group(table):
        band(axes, place, groups.label(place), rows[x], *(rows[column] for column in columns))
    label_axis(axes, groups, x)
    wide_scale(axes, table[columns[0]])


def label_axis(axes: Axes, groups: Groups, x: str) -> None:
    """Labels the horizontal axis, which is one of AXES."""
    axes.set_xlabel(AXES[x] + (groups.unit if x == "virtual_time" else ""))
    if "bytes" in x:
        unit_along(axes.xaxis, "B")
    elif x == "round":
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def wide_scale(axes: Axes, values: ArrayLike) -> None:
    """Makes the vertical axis logarithmic if all values are positive and span three decades or more."""
    numbers = np.asarray(values, float)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) and numbers.min() > 0 and numbers.max() >= 1000 * numbers.min():
        axes.set_yscale("log")


def unit_along(axis: Axis, unit: str, ticks: int = 5) -> None:
    """Labels the ticks of an axis with a unit, such as 20 MB for B."""
    axis.set_major_formatter(EngFormatter(unit=unit, sep=" "))
    axis.set_major_locator(MaxNLocator(ticks))


def colour(place: int) -> str:
    """Returns the colour of the series at a place, for a white page."""
    return SERIES[place % len(SERIES)][0]


def line_style(place: int, points: int) -> dict[str, Any]:
    """Returns how to draw the line of a series: its colour, its dashes, and a marker at about eight of its points."""
    return {
        "color": colour(place),
        "linestyle": _DASHES[place % len(_DASHES)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "markevery": max(1, -(-points // 8)),
    }


def legend_below(axes: Any, *, grows: bool = True) -> None:
    """Puts the legend of a figure's only axes below them. grows: the figure becomes as much higher."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure = axes.figure
        letters = int((72 * figure.get_figwidth() / rcParams["font.size"] - 5) / _LETTER)
        labels = [fill(label, letters) for label in labels]
        lines = sum(1 + label.count("\n") for label in labels)
        figure.set_figheight(figure.get_figheight() + (0.19 * lines if grows else 0.0))
        figure.legend(handles, labels, loc="outside lower left", handlelength=3.2, frameon=False)


def variables() -> dict[str, tuple[str, str]]:
    """Returns the colours, for white and for black, by name."""
    return {"ink": INK, "muted": MUTED, "grid": GRID} | {f"c{place}": pair for place, pair in enumerate(SERIES)}
