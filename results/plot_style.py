"""The styles of figures for papers, slides and notebooks."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib import style as of_matplotlib
from matplotlib.axes import Axes

from results.measure import NotComparable
from results.report import style
from results.texts import quoted

OWN = ("paper", "page", "dark")
_BLACK = "#17181a"
_THIN = {"lines.linewidth": 1.2, "lines.markersize": 3.0}
_FILES = {"pdf.fonttype": 42, "savefig.transparent": False, "svg.hashsalt": "raysim", "savefig.dpi": 300}
_LETTERS = ("font.size", "axes.labelsize", "axes.titlesize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize")


@dataclass(frozen=True)
class Styled:
    """A style: one of OWN, or the name of one of matplotlib's. Raises NotComparable for a name that is neither."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in (*OWN, *of_matplotlib.available):
            known = f"{', '.join(OWN)}, or a style of matplotlib's, such as {', '.join(of_matplotlib.available[:4])}"
            raise NotComparable(f"style: must be one of {known}, got {quoted(self.name)}")

    @property
    def background(self) -> Any:
        if self.name in OWN:
            return _BLACK if self.name == "dark" else "white"
        return of_matplotlib.library[self.name].get("figure.facecolor", "white")

    def context(self, font: str | None = None, size: float | None = None) -> AbstractContextManager[None]:
        """Returns matplotlib's settings as a context. font, size: of all letters; None: the style's."""
        own: Any = style.RC if self.name in OWN else of_matplotlib.library[self.name]
        dark: Any = dict(style.variables().values()) if self.name == "dark" else {}
        settings = {key: dark.get(value, value) if isinstance(value, str) else value for key, value in own.items()}
        settings |= _FILES
        if dark:
            settings |= {"axes.facecolor": _BLACK, "figure.facecolor": _BLACK, "savefig.facecolor": _BLACK}
        if size is not None:
            settings |= dict.fromkeys(_LETTERS, size) | _THIN
        if font is not None:
            settings["font.family"] = font
        return rc_context(settings)

    def recolour(self, axes: Axes, hue: int, banded: bool) -> None:
        """Gives the line that was drawn last, and its band if it has one, the style's colour for a hue."""
        if self.name in OWN and self.name != "dark":
            return
        colour = style.SERIES[hue % len(style.SERIES)][1] if self.name == "dark" else f"C{hue}"
        axes.lines[-1].set_color(colour)
        if banded:
            axes.collections[-1].set_facecolor(colour)
