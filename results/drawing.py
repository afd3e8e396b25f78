"""What figures draw, those of reports as those for papers: lines with bands, ranked values, dots, and axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import ArrayLike

from results import style
from results.groups import Groups, Look

_DOTS = 250  # of a group in a figure, at most: each makes a page longer


def by_group(frame: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yields the place and the rows of each group."""
    for place, rows in frame.groupby("group"):
        yield int(str(place)), rows


def by_text(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yields the rows with the same texts in these columns. Accuracy comes first, then loss, then the others."""
    found = {tuple(map(str, key)): rows for key, rows in frame.groupby(list(columns), observed=True)}
    for key in sorted(found, key=lambda key: (key[0] != "accuracy", key[0] != "loss", key)):
        yield key, found[key]


def series(axes: Axes, groups: Groups, table: pd.DataFrame, x: str, *columns: Any) -> None:
    """Draws a line for each group of a table. The first column is the line; two more are the edges of a band."""
    for place, of_group in by_group(table):
        lines = (of_group[column] for column in columns)
        look, strength = groups.groups[place].look, min(0.18, 0.6 / len(groups))
        band(axes, look, groups.label(place), of_group[x], *lines, strength=strength)


def band(axes: Axes, look: Look, label: str | None, x: ArrayLike, *lines: ArrayLike, strength: float = 0.18) -> None:
    """Draws a line: the first of `lines`. Two more are the edges of a band around it."""
    middle, *edges = lines
    axes.plot(x, middle, label=label, **style.line(look, len(np.asarray(middle))))
    if edges:
        low, high = edges
        axes.fill_between(x, low, high, color=style.colour(look.hue), alpha=strength, linewidth=0)


def ranks(axes: Axes, look: Look, label: str | None, values: ArrayLike) -> None:
    """Draws values in rising order, the smallest at 0 % and the largest at 100 %; NaN is last, and leaves a gap."""
    rising = np.sort(np.asarray(values, float))
    at = np.linspace(0, 1, min(len(rising), 100))
    band(axes, look, label, 100 * at, rising[np.rint(at * (len(rising) - 1)).astype(int)])
    axes.set_xlim(-5, 105)


def dots(axes: Axes, groups: Groups, table: pd.DataFrame, x: str, y: str) -> None:
    """Draws a dot for each row of a table, for at most so many of each group, evenly picked."""
    for place, rows in by_group(table):
        some = rows.iloc[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _DOTS)).astype(int))]
        shape = style.line(groups.groups[place].look, 1) | {"linestyle": "None", "alpha": 0.55, "markersize": 3.5}
        axes.plot(some[x], some[y], label=groups.label(place), **shape)


def label_above(axes: Axes, row: int, text: str) -> None:
    """Writes what a horizontal bar stands for above it, in place of a label beside the axis."""
    axes.text(0, row - 0.28, text, va="bottom", fontsize=8.5, in_layout=False)
    axes.spines["left"].set_visible(False)


def wide_scale(axes: Axes, values: ArrayLike) -> None:
    """Makes the vertical axis logarithmic if all values are positive and span three decades or more."""
    numbers = np.asarray(values, float)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) and numbers.min() > 0 and numbers.max() >= 1000 * numbers.min():
        axes.set_yscale("log")


def first_axis(axes: Axes, groups: Groups) -> None:
    """Labels the horizontal axis as the first axis of the groups, and puts rounds at whole numbers."""
    axes.set_xlabel(groups.axis_label)
    if not groups.timed:
        whole_numbers(axes)


def whole_numbers(axes: Axes) -> None:
    """Puts the ticks of the horizontal axis at whole numbers only."""
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def unit_along(axis: Axis, unit: str, ticks: int = 5) -> None:
    """Labels the ticks of an axis with a unit, such as 20 MB for B."""
    axis.set_major_formatter(EngFormatter(unit=unit, sep=" "))
    axis.set_major_locator(MaxNLocator(ticks))
