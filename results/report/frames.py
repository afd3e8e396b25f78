"""Splits data frames by group or by metric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pandas.core.groupby import SeriesGroupBy

_STRETCHES = 40  # stretches of rounds, or of virtual time, in a figure, at most


def by_group(frame: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yields the place and the rows of each group."""
    for place, rows in frame.groupby("group"):
        yield int(str(place)), rows


def by_text(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yields the rows with the same texts in these columns. Accuracy comes first, then loss, then the others."""
    found = {tuple(map(str, key)): rows for key, rows in frame.groupby(list(columns), observed=True)}
    for key in sorted(found, key=lambda key: (key[0] != "accuracy", key[0] != "loss", key)):
        yield key, found[key]


def with_nan(table: pd.DataFrame, values: SeriesGroupBy[Any, Any]) -> pd.DataFrame:
    """Returns a table of aggregates of grouped values with NaN where a value is NaN, which pandas leaves out."""
    table = table.astype(float)
    table.loc[values.count() < values.size()] = np.nan
    return table


def gaps(values: pd.Series[float]) -> str:
    """Returns a sentence for a caption if lines through these values have gaps, else an empty text."""
    return "" if np.isfinite(values).all() else " Lines have gaps where the value of a run is NaN or infinite."


def without(count: int) -> str:
    """Returns a sentence for a caption that says how many values are NaN or infinite, and so are not in the figure."""
    return f"{count:,} values that are NaN or infinite are left out." if count else ""


def quantiles(frame: pd.DataFrame, axis: str, name: str, *shares: float) -> pd.DataFrame:
    """Returns the quantiles of a column's finite values at these shares, one row for each group and stretch of an axis.

    axis: the column `round` or `virtual_time`, which the table has, too, with the middles of the stretches. The
    quantiles' columns are named by their shares.
    """
    frame = frame[np.isfinite(frame[name])]
    if axis == "round":
        width = max(1, -(-(frame["round"].max() + 1) // _STRETCHES))
        middles = frame["round"] // width * width + (width - 1) / 2
    else:
        width = frame[axis].max() / _STRETCHES or 1.0
        middles = ((frame[axis] // width).clip(upper=_STRETCHES - 1) + 0.5) * width
    of_stretch = frame[name].groupby([frame["group"], middles])
    table: pd.DataFrame = of_stretch.quantile(np.array(shares)).unstack().reset_index()
    return table
