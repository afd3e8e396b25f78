"""Splits data frames by group or by metric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_STRETCHES = 40  # stretches of rounds in a figure, at most


def by_group(frame: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yields the place and the rows of each group."""
    for place, rows in frame.groupby("group"):
        yield int(str(place)), rows


def by_text(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yields the rows with the same texts in these columns. Accuracy comes first, then loss, then the others."""
    found = {tuple(map(str, key)): rows for key, rows in frame.groupby(list(columns), observed=True)}
    for key in sorted(found, key=lambda key: (key[0] != "accuracy", key[0] != "loss", key)):
        yield key, found[key]


def quantiles(frame: pd.DataFrame, name: str, *shares: float) -> pd.DataFrame:
    """Returns a column's quantiles at these shares, one row for each group and stretch of rounds.

    `round` is the middle of the stretch, and the quantiles' columns are named by their shares.
    """
    frame = frame[np.isfinite(frame[name])]
    width = max(1, -(-(frame["round"].max() + 1) // _STRETCHES))
    middles = frame["round"] // width * width + (width - 1) / 2
    of_stretch = frame[name].groupby([frame["group"], middles])
    table: pd.DataFrame = of_stretch.quantile(np.array(shares)).unstack().reset_index()
    return table
