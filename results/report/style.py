"""How figures look. Colours stand out on white and on black and for the colour-blind; lines differ in dashes too.

A colour stands for a method, on the whole page. What differs within a method, such as what became of its dispatches,
differs in strength and hatching.
"""

from typing import Any

from matplotlib.colors import to_rgba

from results.groups import Look

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
