"""A figure of a report, as SVG for a file of its own and for the page."""

import io
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from results.report import style
from results.report.values import under_pointer

WIDTH = 5.0  # inches, 360 points: as wide as a phone, so that letters keep their size there
_WIDE = (10.5, 3.6)  # inches, on a wide page
_TRANSPARENT = {"axes.facecolor": "none", "figure.facecolor": "none"}
_LEGEND_ROW = 0.19  # inches
_LETTERS = 60  # longest line of a label in the legend
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_COORDINATES = re.compile(r'\b(d|x|y)="[^"]*"')
_STYLE = re.compile(r'\bstyle="[^"]*"')
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
    """What the page shows under the pointer, as JSON, of both: see `results.report.values`."""

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
        return style.on_file(_shortened(text.getvalue())), under_pointer(axes)


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
