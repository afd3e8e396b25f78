"""The formats that a table of texts, such as a comparison, can be printed in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from results.compare import Comparison
from results.text_table import TextTable, text_table

if TYPE_CHECKING:
    import pandas as pd


_GAP = 2  # letters between columns
_KEYS = 3  # columns of keys in a page, at most
_WORDS = 24  # letters of words in a line, at least
_WHOLE = re.compile(r"\n|(?<!±) +(?!±)")  # between what stays in one line


def render(comparison: Comparison, format: str, percent: bool = False, width: int = 80) -> RenderableType:
    """Renders a comparison as `table`, for a terminal, or as text: `markdown`, `latex` or `csv`.

    percent: whether to give accuracies in percent; csv always gives fractions. width: of the terminal, in letters.
    """
    if format == "csv":  # one row for each group and metric, with nothing rounded
        return str(comparison.frame.to_csv(index=False, lineterminator="\n")).rstrip("\n")
    shown = text_table(comparison, percent)
    if format == "table":
        if shown.narrow and sum(least_widths(shown.frame, shown.labels)) > width:
            shown = shown.narrow
        return Group(*_tables(shown, width), Text(), *(Text(line, style="dim") for line in shown.caption))
    return _markdown(shown) if format == "markdown" else _latex(shown)


def plain_table(frame: pd.DataFrame, words: int, gap: int = _GAP, widths: Sequence[int] = ()) -> Table:
    """Returns a frame of texts as a table of rich. words: how many columns hold words, and are aligned left; those
    after them hold numbers. gap: letters between columns. widths: of columns; by default as wide as there is room."""
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
    for place, head in enumerate(frame):
        how: Any = {"justify": "left" if place < words else "right", "width": widths[place] if widths else None}
        table.add_column(Text(str(head)), overflow="fold", **how)
    for row in frame.itertuples(index=False):
        table.add_row(*map(Text, row))
    return table


def fitted(frame: pd.DataFrame, words: int, width: int) -> Table:
    """Returns a table whose widest columns are wrapped, so that it has this width, as far as no number is cut."""
    widths = [max(len(line) for cell in cells for line in cell.split("\n")) + _GAP for cells in _cells(frame)]
    least = least_widths(frame, words)
    while sum(widths) - _GAP > width and (wide := [at for at, found in enumerate(widths) if found > least[at]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    return plain_table(frame, words, _GAP, [found - _GAP for found in widths])


def least_widths(frame: pd.DataFrame, words: int) -> list[int]:
    """Returns what columns need at least, with the gap after them. words: as in `plain_table`."""
    found = []
    for place, cells in enumerate(_cells(frame)):
        whole = max(len(piece) for cell in cells for piece in _WHOLE.split(cell))
        longest = max(len(line) for cell in cells for line in cell.split("\n"))
        found.append((max(whole, min(longest, _WORDS)) if place < words else whole) + _GAP)
    return found


def _cells(frame: pd.DataFrame) -> Iterator[list[str]]:
    """Yields the head and the texts of each column."""
    for place, head in enumerate(frame):
        yield [str(head), *frame.iloc[:, place]]


def _tables(shown: TextTable, width: int) -> Iterator[RenderableType]:
    """Yields one table or, where it would be too wide, several one after another, each with some of the numbers."""
    least, blocks, used = least_widths(shown.frame, shown.labels), list[list[int]](), math.inf
    for place in range(shown.labels, len(least)):
        if used + least[place] > width + _GAP:
            blocks.append([])
            used = sum(least[: shown.labels])
        blocks[-1].append(place)
        used += least[place]
    for number, block in enumerate(blocks):
        yield from [Text()] if number else []
        yield fitted(shown.frame.iloc[:, [*range(shown.labels), *block]], shown.labels, width)


def as_html(shown: TextTable) -> str:
    """Renders a table for a page or a notebook: names and numbers before other keys, which may be many."""
    if shown.narrow and ("name" in shown.frame or shown.labels > _KEYS):
        shown = shown.narrow
    frame = shown.frame
    if {"name", "what"} <= {*frame}:
        frame = frame[[*frame.columns.drop("what"), "what"]]
    return f"{frame.to_html(index=False, border=0)}<p>{'<br/>'.join(map(escape, shown.caption))}</p>"


def _markdown(shown: TextTable) -> str:
    heads, numbers = [*map(str, shown.frame)], shown.frame.shape[1] - shown.labels
    rule = [":--"] * shown.labels + ["--:"] * numbers
    lines: list[list[str]] = [heads, rule, *shown.frame.to_numpy().tolist()]
    rows = ("| " + " | ".join(text.replace("|", r"\|").replace("*", r"\*") for text in line) + " |" for line in lines)
    return "\n".join([*rows, "", *(f"{line}  " for line in shown.caption)]).rstrip()


def _latex(shown: TextTable) -> str:
    sides = "l" * shown.labels + "r" * (shown.frame.shape[1] - shown.labels)
    text = shown.frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    tabular = text.to_latex(hrules=True, column_format=sides)
    for sign, command in (("±", r"$\pm$"), ("†", r"$^{\dagger}$"), ("≥", r"$\geq$")):
        tabular = tabular.replace(sign, command)
    return "\n".join([*(f"% {line}" for line in shown.caption), tabular.rstrip()])
