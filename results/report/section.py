"""The parts that a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from results.drawing import first_axis, series, wide_scale
from results.groups import Groups, RunGroup
from results.picture import Picture, picture

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class PageRow(NamedTuple):
    """A row of a table. hue: the colour of its method, if it is about one."""

    cells: tuple[str, ...]
    hue: int | None = None


@dataclass(frozen=True)
class PageTable:
    """A table of texts. The page folds all but its first rows."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[PageRow, ...]


@dataclass(frozen=True)
class Panel:
    """Figures that belong together, such as those of one group of runs."""

    label: str
    pictures: Sequence[Picture] = ()
    tables: Sequence[PageTable] = ()


@dataclass(frozen=True)
class Section:
    """A section of the page, with a heading and a text. Its figures are shown at once, as tabs or as folded panels."""

    name: str
    """The section's id in the page."""
    title: str
    text: str
    pictures: Sequence[Picture] = ()
    """Figures that are always shown."""
    tabs: Sequence[Panel] = ()
    """Panels of which one is shown at a time."""
    details: Sequence[Panel] = ()
    """Panels that can be unfolded; the first is open."""
    tables: Sequence[PageTable] = ()
    """Tables below the figures."""

    @property
    def panels(self) -> Sequence[Panel]:
        """All that has figures."""
        return (Panel("", self.pictures), *self.tabs, *self.details)


Maker: TypeAlias = Callable[[Groups], Section | None]
"""Makes a section, or None where the runs' tables hold nothing for it."""


def of_each_group(name: str, title: str, text: str, make: Callable[[Groups, RunGroup], Iterable[Picture]]) -> Maker:
    """Returns what makes a section with a panel for each group of which sections show a run, where there are figures.

    text: the section's, in which {shown} stands for which runs are shown.
    """

    def section(groups: Groups) -> Section | None:
        found = (Panel(group.label, list(make(groups, group))) for group in groups.shown)
        details = [panel for panel in found if panel.pictures]
        return Section(name, title, text.format(shown=groups.representatives), details=details) if details else None

    return section


def lines(
    groups: Groups,
    table: pd.DataFrame,
    name: str,
    title: str,
    caption: str,
    label: str,
    *columns: Any,
    linear: bool = False,
) -> Picture:
    """Draws a figure with a line for each group over the first axis, see `series`.

    label: of the vertical axis, which is linear, or see `wide_scale`.
    """

    def draw(axes: Axes) -> None:
        series(axes, groups, table, groups.axis, *columns)
        axes.set_ylabel(label)
        first_axis(axes, groups)
        if not linear:
            wide_scale(axes, table[columns[0]])

    return picture(name, title, caption, draw)


def gaps(values: pd.Series[float]) -> str:
    """Returns a sentence for a caption if lines through these values have gaps, else an empty text."""
    return "" if np.isfinite(values).all() else " Lines have gaps where the value of a run is NaN or infinite."
