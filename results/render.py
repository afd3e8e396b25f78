"""The formats that a table of texts, such as a comparison, can be printed in."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from results.compare import Comparison
from results.paired import Paired
from results.text_table import TextTable, text_table

if TYPE_CHECKING:
    import pandas as pd


def render(comparison: Comparison | Paired, format: str, percent: bool = False) -> RenderableType:
    """Renders a comparison as `table`, for a terminal, or as text: `markdown`, `latex` or `csv`.

    percent: whether to give accuracies in percent; csv always gives fractions.
    """
    if format == "csv":  # one row for each group and metric, with nothing rounded
        return str(comparison.frame.to_csv(index=False, lineterminator="\n")).rstrip("\n")
    shown = text_table(comparison, percent)
    if format == "table":
        caption = (Text(line, style="dim") for line in shown.caption)
        return Group(plain_table(shown.frame, shown.labels), Text(), *caption)
    return _markdown(shown) if format == "markdown" else _latex(shown)


def plain_table(frame: pd.DataFrame, words: int, gap: int = 2) -> Table:
    """Returns a frame of texts as a table of rich. words: how many columns hold words, and are aligned left; those
    after them hold numbers. gap: letters between columns."""
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
    for place, head in enumerate(frame):
        table.add_column(Text(str(head)), justify="left" if place < words else "right", overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*map(Text, row))
    return table


def as_html(shown: TextTable) -> str:
    """Renders a table for a page or a notebook."""
    return f"{shown.frame.to_html(index=False, border=0)}<p>{'<br/>'.join(map(escape, shown.caption))}</p>"


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
