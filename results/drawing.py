"""What figures draw, those of reports as those for papers: learning curves, lines with bands, and axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import EngFormatter, MaxNLocator
from numpy.typing import ArrayLike

from results import style
from results.groups import Groups
from results.readings import epsilon_of, of_models, readings, with_nan

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
    axes.plot(x, middle, label=label, **style.line(place, len(np.asarray(middle))))
    if edges:
        low, high = edges
        axes.fill_between(x, low, high, color=style.colour(place), alpha=0.15, linewidth=0)


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
