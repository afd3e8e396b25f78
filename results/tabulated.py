"""A comparison as the table that notebooks show and papers print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.compare import Comparison
from results.render import render

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Tabulated:
    """A comparison of runs as a table."""

    comparison: Comparison
    percent: bool = False
    """Whether accuracies are in percent."""

    @property
    def frame(self) -> pd.DataFrame:
        """The numbers, not rounded: a row for each group and metric, as `Runs.compare` returns it."""
        return self.comparison.frame

    def markdown(self) -> str:
        """Returns the table in GitHub's Markdown."""
        return str(render(self.comparison, "markdown", self.percent))

    def latex(self) -> str:
        """Returns the table as a tabular for the LaTeX package booktabs."""
        return str(render(self.comparison, "latex", self.percent))

    def __repr__(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        return str(render(self.comparison, "html", self.percent))
