"""The parts that a report is made of."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from results.groups import Groups, RunGroup
from results.report.picture import Picture


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


def panels(groups: Groups, make: Callable[[RunGroup], Iterable[Picture]]) -> list[Panel]:
    """Returns a panel for each group of which sections show a run, and for which there are figures."""
    found = (Panel(group.label, list(make(group))) for group in groups.shown)
    return [panel for panel in found if panel.pictures]


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
