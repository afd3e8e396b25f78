"""A comparison, or differences seed by seed, as the table that notebooks show and papers print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.compare import Comparison
from results.paired import Paired
from results.render import render

if TYPE_CHECKING:
    import pandas as pd


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
