"""How figures look, those of reports as those for papers, slides and notebooks.

Colours stand out on white and on black and for the colour-blind; lines differ in dashes too. A colour stands for a
method, on the whole page. What differs within a method, such as what became of its dispatches, differs in strength and
hatching.
"""

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib import style as of_matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from results.groups import Look
from results.measure import NotComparable
from results.texts import quoted

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

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
_LETTERING = "DejaVu Sans"  # comes with matplotlib, so that the layout is the same everywhere

STATUS = ("used", "discarded", "dropped", "unfinished")  # each has the pattern of its place
_PATTERNS = (
    (0.95, ""),
    (0.5, "//"),
    (0.3, "xx"),
    (0.12, "--"),
    (0.65, "||"),
    (0.4, "++"),
)  # dots would make long files

RC: Any = {  # matplotlib's settings; each version of it declares other types of keys
    "axes.edgecolor": MUTED[0],
    "axes.grid": True,
    "axes.labelcolor": INK[0],
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "font.family": _LETTERING,
    "font.size": 9.5,
    "grid.color": GRID[0],
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
    "text.color": INK[0],
    "text.parse_math": False,
    "xtick.color": MUTED[0],
    "xtick.labelcolor": INK[0],
    "ytick.color": MUTED[0],
    "ytick.labelcolor": INK[0],
}


def colour(place: int) -> str:
    """Returns the colour of the series at a place, for a white page."""
    return SERIES[place % len(SERIES)][0]


def line(look: Look, points: int) -> dict[str, Any]:
    """Returns how to draw the line of a series: its colour, its dashes, and a marker at about eight of its points."""
    return {
        "color": colour(look.hue),
        "linestyle": _DASHES[look.dash % len(_DASHES)],
        "marker": _MARKERS[look.hue % len(_MARKERS)],
        "markevery": max(1, -(-points // 8)),
    }


def pattern(hue: int | None, number: int) -> dict[str, Any]:
    """Returns how to fill the numbered part of a bar, in a method's colour. hue: None for a legend of all methods."""
    of = INK[0] if hue is None else colour(hue)
    strength, hatch = _PATTERNS[number % len(_PATTERNS)]
    return {"facecolor": to_rgba(of, strength), "edgecolor": INK[0], "hatch": hatch, "linewidth": 0.0}


def variables() -> dict[str, tuple[str, str]]:
    """Returns the colours, for white and for black, by their names in the page's style sheet."""
    return {"ink": INK, "muted": MUTED, "grid": GRID} | {f"c{place}": pair for place, pair in enumerate(SERIES)}


def on_file(svg: str) -> str:
    """Replaces the font that the layout was made with by a font of the reader's system."""
    return svg.replace(f"'{_LETTERING}'", FONT)


def on_page(svg: str) -> str:
    """Replaces colours and fonts by variables of the page's style sheet."""
    for name, (light, _) in variables().items():
        svg = svg.replace(light, f"var(--{name})")
    return svg.replace(FONT, "var(--font)")


# --- figures for papers, slides and notebooks -------------------------------------------------------------------------

OWN = ("paper", "page", "dark")
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
_LENGTH = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_INCHES)})")
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
        own: Any = RC if self.name in OWN else of_matplotlib.library[self.name]
        dark: Any = dict(variables().values()) if self.name == "dark" else {}
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
        colour = SERIES[hue % len(SERIES)][1] if self.name == "dark" else f"C{hue}"
        axes.lines[-1].set_color(colour)
        if banded:
            axes.collections[-1].set_facecolor(colour)


def inches(text: str, key: str) -> float:
    """Returns a length such as "3.3in" or "84 mm" in inches. Raises NotComparable for any other text."""
    found = _LENGTH.fullmatch(text.strip())
    if not found or not float(found[1]):
        units = ", ".join(_INCHES)
        raise NotComparable(f"{key}: must be a number with a unit of {units}, such as 3.3in, got {quoted(text)}")
    return float(found[1]) * _INCHES[found[2]]
