"""The parts that a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from results.report.picture import Picture


@dataclass(frozen=True)
class Panel:
    """Figures that belong together, such as those of one group of runs."""

    label: str
    pictures: Sequence[Picture]


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
