"""A figure of a report, as SVG for a file of its own and for the page, which shows under the pointer what it stands
for."""

import io
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from results import style

WIDTH = 5.0  # inches, 360 points: as wide as a phone, so that letters keep their size there
_WIDE = (10.5, 3.6)  # inches, on a wide page
_TRANSPARENT = {"axes.facecolor": "none", "figure.facecolor": "none"}
_LEGEND_ROW = 0.19  # inches
_LETTERS = 60  # longest line of a label in the legend
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_COORDINATES = re.compile(r'\b(d|x|y)="[^"]*"')
_STYLE = re.compile(r'\bstyle="[^"]*"')
_POINTS = 150  # of a line under the pointer, at most: each makes the page longer
_SERIES = 60  # lines of a figure, at most
_BARS = 200
_DECIMALS = re.compile(r"(\.\d)\d+")
_IDLE = re.compile(r'<metadata>.*?</metadata>| id="[\w.]+_\d+"| transform="rotate\(-0 [^"]*"|<!--.*?-->', re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """A figure."""

    name: str
    """The name of its file. No other figure of the report has it."""
    title: str
    caption: str
    svg: str = field(repr=False)
    """The figure as a file of its own, in colours for a white page."""
    wide: str = field(repr=False)
    """The same for a wide page, where it takes its whole width; empty if it takes a part of it only."""
    values: tuple[str, str] = field(repr=False)
    """What the page shows under the pointer, as JSON, of both: see `_under_pointer`."""

    @property
    def inline(self) -> str:
        """The figure as part of the page, whose style sheet gives the colours. Its ids are unique in the page."""
        return _inline(self.svg, self.name)

    @property
    def inline_wide(self) -> str:
        return _inline(self.wide, f"{self.name}-wide")

    @property
    def uri(self) -> str:
        """The figure's file as a data URI, for a link."""
        return "data:image/svg+xml," + quote(self.svg, safe=" /:;,()=")


def _inline(svg: str, name: str) -> str:
    body = re.sub(r"<style\b.*?</style>", "", svg[svg.index("<svg") :])
    body = re.sub(r' width="[^"]*" height="[^"]*"', "", body, count=1)
    return style.on_page(_ID.sub(rf"\g<1>{name}-", body))


def picture(
    name: str, title: str, caption: str, draw: Callable[[Axes], None], height: float = 2.5, wide: bool = False
) -> Picture:
    """Draws a figure.

    height: in inches, without the legend, which lists everything drawn with a label. wide: whether it takes the whole
    width of a wide page.
    """
    name = re.sub(r"[^\w-]+", "-", name)  # for file names and ids
    narrow, values = _drawn(name, draw, height, WIDTH)
    broad, more = _drawn(f"{name}-wide", draw, _WIDE[1], _WIDE[0]) if wide else ("", "")
    return Picture(name, title, caption, narrow, broad, (values, more))


def _drawn(name: str, draw: Callable[[Axes], None], height: float, width: float) -> tuple[str, str]:
    """Returns a figure as SVG, and its values as JSON."""
    with rc_context(style.RC | _TRANSPARENT | {"svg.hashsalt": name}):
        figure = Figure(figsize=(width, height), dpi=72)
        canvas: Any = FigureCanvasSVG(figure)
        text = io.StringIO()
        axes = figure.subplots()
        draw(axes)
        _legend(figure, axes)
        ConstrainedLayoutEngine().execute(figure)
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})  # `savefig` would draw all of it twice
        return style.on_file(_shortened(text.getvalue())), _under_pointer(axes)


def _shortened(svg: str) -> str:
    """Shortens SVG to half its size: rounds coordinates to a tenth of a point, and removes unused ids and spaces."""
    svg = _COORDINATES.sub(lambda match: _DECIMALS.sub(r"\1", match[0]), svg)
    svg = _STYLE.sub(lambda match: match[0].replace(": ", ":").replace("; ", ";"), svg)
    return re.sub(r"(?<=>)\s+(?=<)", "", _IDLE.sub("", svg)).replace("\n", "")


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    longest = max(map(len, labels))
    columns = 4 if longest <= 10 else 3 if longest <= 14 else 2 if longest <= 25 else 1
    labels = [textwrap.fill(label, _LETTERS) for label in labels]
    rows = -(-len(labels) // columns) + sum(label.count("\n") for label in labels)
    width, height = figure.get_size_inches()
    if width > WIDTH:
        labels = [textwrap.fill(label, _LETTERS // 2) for label in labels]
        figure.legend(handles, labels, loc="outside right upper", handlelength=3.2)
        return
    figure.set_size_inches(width, height + _LEGEND_ROW * rows)
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, handlelength=3.2, columnspacing=1.2)


# --- under the pointer ------------------------------------------------------------------------------------------------


def _under_pointer(axes: Axes) -> str:
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
