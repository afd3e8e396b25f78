"""What several figures draw: lines with bands, ranked values, and axes."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import ArrayLike

from results.groups import Groups, Look
from results.report import style
from results.report.frames import by_group
from results.report.picture import Picture, picture


def series(axes: Axes, groups: Groups, table: pd.DataFrame, x: str, *columns: Any) -> None:
    """Draws a line for each group of a table. The first column is the line; two more are the edges of a band."""
    for place, of_group in by_group(table):
        lines = (of_group[column] for column in columns)
        look, strength = groups.groups[place].look, min(0.18, 0.6 / len(groups))
        band(axes, look, groups.label(place), of_group[x], *lines, strength=strength)


def lines(
    groups: Groups,
    table: pd.DataFrame,
    name: str,
    title: str,
    caption: str,
    label: str,
    *columns: Any,
    linear: bool = False,
) -> Picture:
    """Draws a figure of `series` over the first axis. label: of the vertical axis, which is linear, or see
    `wide_scale`."""

    def draw(axes: Axes) -> None:
        series(axes, groups, table, groups.axis, *columns)
        axes.set_ylabel(label)
        first_axis(axes, groups)
        if not linear:
            wide_scale(axes, table[columns[0]])

    return picture(name, title, caption, draw)


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
