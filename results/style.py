"""How figures look: colours that stand out on white and on black and for the colour-blind, dashes, and letters."""

from textwrap import fill
from typing import Any

from matplotlib import rcParams

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


def colour(place: int) -> str:
    """Returns the colour of the series at a place, for a white page."""
    return SERIES[place % len(SERIES)][0]


def line(place: int, points: int) -> dict[str, Any]:
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
