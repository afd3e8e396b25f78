"""The formats that a comparison can be printed in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from results import html
from results.compare import Comparison
from results.paired import Paired
from results.text_table import Cell, TextTable, paired_table, text_table
from results.texts import cut

if TYPE_CHECKING:
    import pandas as pd

_LONGEST = 36  # letters of a key's value in the terminal
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "†": r"$^{\dagger}$",
    "≥": r"$\geq$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


@dataclass(frozen=True, repr=False)
class Tabulated:
    """A comparison of runs as a table. In terminals and notebooks it shows itself."""

    comparison: Comparison | Paired
    percent: bool = False
    """Whether accuracies are in percent."""

    @property
    def frame(self) -> pd.DataFrame:
        """The numbers, not rounded: a row for each group and metric, as `Runs.compare` or `Runs.paired` returns it."""
        return self.comparison.frame

    def markdown(self) -> str:
        """Returns the table in GitHub's Markdown."""
        return str(render(self.comparison, "markdown", self.percent))

    def latex(self) -> str:
        """Returns the table as a tabular for the LaTeX package booktabs."""
        return str(render(self.comparison, "latex", self.percent))

    def csv(self) -> str:
        """Returns the numbers, not rounded, as CSV."""
        return str(render(self.comparison, "csv"))

    def __repr__(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        return str(render(self.comparison, "html", self.percent))


def render(
    comparison: Comparison | Paired, format: str, percent: bool = False, width: int = 80, bold: bool = True
) -> RenderableType:
    """Renders a comparison as `table`, for a terminal of this width, or as text: `markdown`, `latex`, `html` or `csv`.

    percent: whether to give accuracies in percent; csv always gives fractions. bold: whether the terminal shows the
    best numbers of a table bold; if not, they have a star.
    """
    shown = paired_table(comparison, percent) if isinstance(comparison, Paired) else text_table(comparison, percent)
    if format == "csv":  # one row for each group and metric, with nothing rounded
        return str(comparison.frame.to_csv(index=False, lineterminator="\n")).rstrip("\n")
    if format == "table":
        return table(shown if bold else _starred(shown), width)
    return {"markdown": markdown, "latex": latex, "html": as_html}[format](shown)


def table(shown: TextTable, width: int) -> RenderableType:
    """Renders a table for `rich.console.Console.print`. One that is too wide becomes several, one below the other."""
    tables: list[RenderableType] = []
    shown = _labelled(shown, width)
    for places in _packed(shown, width):
        part = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for label in shown.labels:
            part.add_column(Text(label), overflow="fold", max_width=width // 2)
        for place in places:
            head, size = Text("\n".join(shown.heads[place])), _width(shown, place)
            part.add_column(head, justify="right", overflow="fold", width=size)
        for labels, cells in shown.rows:
            numbers = [_number(shown, cells[place], place) for place in places]
            part.add_row(*map(Text, labels), *numbers)
        tables += [part, Text()]
    return Group(*tables, *(Text(line, style="dim") for line in shown.caption))


def _starred(shown: TextTable) -> TextTable:
    """Marks the best numbers by a star instead of bold letters."""
    rows = [
        (labels, [cell._replace(mark="*") if cell.best else cell for cell in cells]) for labels, cells in shown.rows
    ]
    return replace(shown, rows=rows, caption=[line.replace("bold: best", "* best") for line in shown.caption])


def _number(shown: TextTable, cell: Cell, place: int) -> RenderableType:
    """Returns a cell, with room for a mark where others of its column have one, so that digits are aligned."""
    marked = any(cells[place].mark for _, cells in shown.rows)
    return Text(_plain(cell) + " " * (marked and not cell.mark), style="bold" if cell.best else "")


def _labelled(shown: TextTable, width: int) -> TextTable:
    """Shortens long values, such as lists, and joins the values of a row if they would leave no room for numbers."""
    rows = [(tuple(cut(label, _LONGEST) for label in labels), cells) for labels, cells in shown.rows]
    shown = replace(shown, rows=rows)
    if len(shown.labels) < 3 or 3 * _labels_width(shown, width) <= 2 * width:
        return shown
    joined = [
        ", ".join(f"{key}={value}" for key, value in zip(shown.labels, labels, strict=True) if value != "-")
        for labels, _ in rows
    ]
    rows = [((label,), cells) for label, (_, cells) in zip(joined, rows, strict=True)]
    return replace(shown, labels=("case",), rows=rows)


def _labels_width(shown: TextTable, width: int) -> int:
    """Returns the width of the columns of labels, none of which takes more than half of the terminal's."""
    labelled = [(label, *(labels[place] for labels, _ in shown.rows)) for place, label in enumerate(shown.labels)]
    return sum(min(max(map(len, texts)), width // 2) + 2 for texts in labelled)


def _packed(shown: TextTable, width: int) -> list[list[int]]:
    """Divides the columns of numbers among tables that fit the width.

    Columns whose heads differ only in the last level stay together where there is room.
    """
    room = width - _labels_width(shown, width)
    tables: list[list[int]] = [[]]
    left = room
    for _, group in groupby(range(len(shown.heads)), lambda place: shown.heads[place][:-1]):
        needed = {place: _width(shown, place) + 2 for place in group}
        if left < sum(needed.values()) <= room:
            tables.append([])
            left = room
        for place, size in needed.items():
            if left < size and tables[-1]:
                tables.append([])
                left = room
            tables[-1].append(place)
            left -= size
    return tables


def _width(shown: TextTable, place: int) -> int:
    """Returns the width of a column of numbers. Heads are broken between words, but short heads are not."""
    words = [word for line in shown.heads[place] for word in ([line] if len(line) <= 12 else line.split())]
    marked = any(cells[place].mark for _, cells in shown.rows)
    return max(map(len, [*words, *(cells[place].text + " " * marked for _, cells in shown.rows)]))


def markdown(shown: TextTable) -> str:
    """Renders a table in GitHub's Markdown, with the best numbers bold and the caption below."""
    head = [*shown.labels, *(", ".join(levels) for levels in shown.heads)]
    rule = [":--"] * len(shown.labels) + ["--:"] * len(shown.heads)
    body = [[*labels, *map(_markdown_cell, cells)] for labels, cells in shown.rows]
    lines = ["| " + " | ".join(text.replace("|", r"\|") for text in line) + " |" for line in (head, rule, *body)]
    return "\n".join([*lines, "", *(f"{line}  " for line in shown.caption)]).rstrip()


def as_html(shown: TextTable) -> str:
    """Renders a table for a notebook, with the best numbers bold and the caption below."""
    heads = [*shown.labels, *(", ".join(levels) for levels in shown.heads)]
    rows = [[*labels, *(html.Bold(_plain(c)) if c.best else _plain(c) for c in cells)] for labels, cells in shown.rows]
    return html.table(heads, rows, words=len(shown.labels)) + html.text("\n".join(shown.caption))


def latex(shown: TextTable) -> str:
    """Renders a tabular for the LaTeX package booktabs, with the best numbers bold, the caption as comments, and what
    marks mean below it."""
    lines = [
        *(f"% {line}" for line in shown.caption),
        rf"\begin{{tabular}}{{{'l' * len(shown.labels)}{'r' * len(shown.heads)}}}",
        r"\toprule",
        *_latex_heads(shown),
        r"\midrule",
        *(_latex_row([*map(_escape, labels), *map(_latex_cell, cells)]) for labels, cells in shown.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip{{\footnotesize {_escape(shown.footnote)}\par}}"] if shown.footnote else []),
    ]
    return "\n".join(lines)


def _plain(cell: Cell) -> str:
    return cell.text + cell.mark


def _latex_heads(shown: TextTable) -> list[str]:
    """Returns a row for each level of heads. Equal heads beside each other are joined, except in the last level."""
    rows = []
    for level in range(1, len(shown.heads[0])):
        cells = [""] * len(shown.labels)
        for path, alike in groupby(head[:level] for head in shown.heads):
            cells.append(rf"\multicolumn{{{len(list(alike))}}}{{c}}{{{_escape(path[-1])}}}")
        rows.append(_latex_row(cells))
    return [*rows, _latex_row([*map(_escape, shown.labels), *(_escape(head[-1]) for head in shown.heads)])]


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _markdown_cell(cell: Cell) -> str:
    return f"**{cell.text}**" if cell.best else _plain(cell)


def _latex_cell(cell: Cell) -> str:
    if cell.text == "-":
        return "--"
    number = _escape(cell.text).replace("-", "$-$")
    return rf"\textbf{{{number}}}" if cell.best else number + _escape(cell.mark)


def _escape(text: str) -> str:
    return re.sub("|".join(map(re.escape, _LATEX)), lambda match: _LATEX[match[0]], text)
