"""Keys, values, numbers and tables as texts for people, and what to install."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

GAP = 2  # letters between columns
_QUOTED = 200  # letters of a value that a message quotes
# Characters that terminals obey, except for ends of lines and tabs, and those that turn the direction of letters.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def quoted(value: Any) -> str:
    """Returns a value as messages quote it: as Python writes it, cut after 200 letters."""
    return "nothing" if value is None else cut(repr(value), _QUOTED)


def cut(text: str, length: int) -> str:
    """Shortens a long text in the middle, and not at the end, where messages say what to do."""
    tail = length // 4
    return text if len(text) <= length else f"{text[: length - tail]}...{text[-tail:]}"


def harmless(text: str) -> str:
    """Returns a text whose control characters are shown and not obeyed, such as \\x1b for an escape."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Terminal(Console):
    """A console that shows control characters in texts, and sends none but its own.

    A stranger's run may name its metrics with characters that move the cursor or turn the direction of letters.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            control: Any = segment.control
            yield segment if control else segment._replace(text=harmless(segment.text))


def as_word(value: object) -> str:
    """Returns a text as one word of a command line, in quotes where that needs them, as a path with spaces does."""
    return shlex.quote(str(value))


def count(number: int, noun: str) -> str:
    """Returns a number with its noun, such as "1 run" or "2 runs"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """Shortens keys to their last name: `delay` for `world.delay.name`. Keys that would be alike keep their path."""
    names = {key: key.removesuffix(".name").rpartition(".")[2] for key in keys}
    count = Counter(names.values())
    return {key: name if count[name] == 1 else key for key, name in names.items()}


def written(value: Any) -> str:
    """Returns a key's value as YAML writes it; "-" where it is missing."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return "-" if value is None or math.isnan(value) else f"{value:.12g}"


def in_full(number: float) -> str:
    """Returns a number as it can be given again: a whole one with all its digits, 9000000 rather than 9e+06, and any
    other rounded up to seven digits."""
    if float(number).is_integer():
        return str(int(number))
    return f"{Context(prec=7, rounding=ROUND_CEILING).create_decimal(number).normalize():f}"


_BYTES = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?:([kKMGT]?)(i?)B)?\s*")


def in_bytes(value: Any) -> Any:
    """Returns the number of bytes that a text such as 5MB (5e6 bytes) or 5 MiB (5 * 2**20 bytes) gives; anything else
    than a text as it is. Raises ValueError for other texts."""
    if not isinstance(value, str):
        return value
    if (found := _BYTES.fullmatch(value)) is None or not (found[2] or not found[3]):
        raise ValueError(f"must be a number of bytes, such as 5000000, 5MB or 5MiB, got {value!r}")
    return float(found[1]) * (1024 if found[3] else 1000) ** " KMGT".index((found[2] or " ").upper())


def precision(mean: float, std: float) -> str:
    """Returns the number format for a mean and its standard deviation: four digits of the mean, or whole numbers."""
    if not math.isfinite(mean) or 0 < abs(mean) < 1e-3:
        return ".4g"
    if mean.is_integer() and (math.isnan(std) or std.is_integer()):
        return ".0f"
    return f".{max(0, 3 - math.floor(math.log10(abs(mean) or 1.0)))}f"


def spread(mean: float, std: float, form: str) -> str:
    """Returns the mean as text, with the standard deviation if there is one."""
    return f"{mean:{form}}" if math.isnan(std) else f"{mean:{form}} ± {std:{form}}"


def plain_table(frame: pd.DataFrame, words: int, gap: int = GAP, widths: Sequence[int] = ()) -> Table:
    """Returns a frame of texts as a table of rich. words: how many columns hold words, and are aligned left; those
    after them hold numbers. gap: letters between columns. widths: of columns; by default as wide as there is room."""
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
    for place, head in enumerate(frame):
        how: Any = {"justify": "left" if place < words else "right", "width": widths[place] if widths else None}
        table.add_column(Text(str(head)), overflow="fold", **how)
    for row in frame.itertuples(index=False):
        table.add_row(*map(Text, row))
    return table


DISTRIBUTION = "raysim-fl"


def extra(name: str) -> str:
    """Returns the command that installs an optional dependency of raysim."""
    return f"pip install '{DISTRIBUTION}[{name}]'"
