"""What the page shows under the pointer: the values that lines, points, bars and cells of a figure stand for."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results.report import style

_POINTS = 150  # of a line, at most: each makes the page longer
_SERIES = 60  # lines of a figure, at most
_BARS = 200


def under_pointer(axes: Axes) -> str:
    """Returns the values of a figure that has been drawn, as JSON; an empty text if there are none.

    box: left, top, right and bottom of the axes in points of the SVG. x, y: the axis' name, its ends, and whether it is
    logarithmic. series: label, colour, x and y of each line, and whether it is single points. bars: the corners of each
    and its text. cells: see `grid`.
    """
    series = [found for line in axes.lines[:_SERIES] if (found := _series(line))]
    bars, cells = list(_bars(axes))[:_BARS], getattr(axes, "raysim_cells", None)
    if not (series or bars or cells):
        return ""
    figure = axes.figure
    assert isinstance(figure, Figure)
    size, place = figure.get_size_inches() * 72, axes.get_position()
    box = [place.x0 * size[0], (1 - place.y1) * size[1], place.x1 * size[0], (1 - place.y0) * size[1]]
    ends = {
        name: [axis.get_label_text(), *_rounded(axis.get_view_interval()), axis.get_scale() == "log"]
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis))
    }
    values = {"box": [round(edge, 1) for edge in box], **ends, "series": series, "bars": bars, "cells": cells}
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def grid(axes: Axes, columns: Sequence[str], rows: Sequence[str], numbers: Any, unit: str) -> None:
    """Says what the cells of a picture stand for, (rows, columns), so that the page can show it under the pointer."""
    known = [[_rounded([n])[0] if np.isfinite(n) else None for n in row] for row in np.asarray(numbers, float)]
    vars(axes)["raysim_cells"] = {"columns": [*columns], "rows": [*rows], "numbers": known, "unit": unit}


def _series(line: Line2D) -> list[Any] | None:
    """Returns a line's label, the place of its colour, its x and y, and whether it is single points."""
    colours, points = [light for light, _ in style.SERIES], str(line.get_linestyle()) == "None"
    x, y = (np.asarray(values, float) for values in (line.get_xdata(), line.get_ydata()))
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    if not len(x) or line.get_color() not in colours or (points and len(x) > 2 * _POINTS):
        return None
    kept = np.arange(len(x)) if points else np.unique(np.linspace(0, len(x) - 1, min(len(x), _POINTS)).astype(int))
    label = str(line.get_label())
    label = "" if label.startswith("_") else label
    return [label, colours.index(str(line.get_color())), _rounded(x[kept]), _rounded(y[kept]), points]


def _bars(axes: Axes) -> Iterator[list[Any]]:
    """Yields left, bottom, right and top of each bar, and its value as text."""
    for bars in axes.containers:
        if not isinstance(bars, BarContainer):
            continue
        label = str(bars.get_label())
        label = "" if label.startswith("_") else f"{label}: "
        along = axes.xaxis if bars.orientation == "horizontal" else axes.yaxis
        for bar in bars.patches:
            box = bar.get_bbox()
            value = box.width if bars.orientation == "horizontal" else box.height
            if np.isfinite(box.extents).all() and value:
                yield [*_rounded(box.extents), f"{label}{value:.4g} ({along.get_label_text()})"]


def _rounded(values: Any) -> list[float]:
    """Returns numbers with five digits, which are short as JSON."""
    return [int(short) if short.is_integer() else short for short in (float(f"{value:.5g}") for value in values)]
