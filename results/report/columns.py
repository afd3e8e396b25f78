"""The sections on columns of tables: of the updates that were used, of coefficients, and algorithms' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from matplotlib.axes import Axes

from results.drawing import dots
from results.groups import Groups
from results.picture import Picture, picture
from results.reader import Run
from results.readings import with_nan
from results.report.section import Section, gaps, lines
from results.schemas import OWN, TABLES

_STRETCHES = 40  # stretches of rounds, or of virtual time, in a figure, at most
_SPREAD, _RANGE, _MEDIAN = (0.5, 0.1, 0.9), (0.5, 0.0, 1.0), (0.5,)  # the shares that a line and its band show
_USED = pc.field("status") == "used"
_ADAPTED = "next_penalty"  # the algorithm's own column: what a client has adapted to after an update


class ColumnFigure(NamedTuple):
    """A figure of a column: quantiles of its rows in each stretch of the first axis, a line for each group."""

    column: str
    title: str
    shares: tuple[float, ...] = _SPREAD
    """The line's share, and those of its band."""


_UPDATES = (
    ColumnFigure("loss_before", "Loss before training"),
    ColumnFigure("loss_after", "Loss after training"),
    ColumnFigure("local_steps", "Local steps"),
    ColumnFigure("weight", "Weight in the server's sum"),
    ColumnFigure("residual", "Residual of the local problem"),
    ColumnFigure("tolerance", "Tolerance of the local problem"),
    ColumnFigure("penalty", "Penalty of ADMM"),
)
_COEFFICIENTS = (
    ColumnFigure("coefficient", "Coefficients", _RANGE),
    ColumnFigure("fallback", "Fallbacks", _MEDIAN),
)


def updates(groups: Groups) -> Section | None:
    """Returns the section on what training reported; None if no update was used, or nothing was reported of any."""
    text = (
        "The updates that were used, of all runs of a group together. Line: median. Band: from their 10 % to their "
        "90 % quantile."
    )
    pictures = list(_pictures(groups, "updates", _UPDATES, "updates", _USED))
    return Section("updates", "Updates", text, [*pictures, *_penalties(groups)]) if pictures else None


def coefficients(groups: Groups) -> Section | None:
    """Returns the section on the coefficients that servers search for their anchors (Feddle); None if none did."""
    frame = groups.frame("coefficients", ["round", "virtual_time", "coefficient", "norm"])
    if frame.empty:
        return None
    text = (
        "The server merges the updates that it keeps, its anchors, with coefficients that it searches on its own data. "
        "The fallback is where a search starts and what it is pulled back to. All runs of a group are taken together. "
        "Line: median. Band of the coefficients: from the smallest to the largest."
    )
    pictures = list(_pictures(groups, "coefficients", _COEFFICIENTS, "coefficients"))
    known = frame[np.isfinite(frame["coefficient"])]
    if len(known):
        below = 100.0 * (known["coefficient"] < 0)
        shares = below.groupby(_stretches(known, groups.axis)).mean().rename("share").reset_index()
        figure = partial(lines, groups, shares, "coefficients-negative", "Negative coefficients")
        pictures.append(figure("Share of the coefficients of each round.", "% below zero", "share", linear=True))
    known = known[np.isfinite(known["norm"])]

    def against_norms(axes: Axes) -> None:
        dots(axes, groups, known, "norm", "coefficient")
        axes.set(xlabel="norm of the anchor", ylabel="coefficient")

    caption = "A dot is a coefficient of a round; of many, some are shown."
    pictures.append(picture("coefficients-norm", "Coefficients against norms", caption, against_norms))
    return Section("coefficients", "Coefficients", text, pictures)


def own_columns(groups: Groups) -> Section | None:
    """Returns the section on the columns that algorithms define themselves; None if there is no such column."""
    pictures: list[Picture] = []
    for table in OWN:
        names = [name for name in groups.runs.schema(table).names if name not in TABLES[table].names]
        figures = [ColumnFigure(name, f"{name.replace('_', ' ').capitalize()} of {table}") for name in names]
        pictures += _pictures(groups, table, figures, f"own-{table}")
    text = (
        "Numbers that the algorithms logged, of all runs of a group together. Line: median over the rows of a round or "
        "stretch of time. Band: from their 10 % to their 90 % quantile."
    )
    return Section("own-columns", "The algorithms' own columns", text, pictures) if pictures else None


def _pictures(
    groups: Groups, table: str, figures: Sequence[ColumnFigure], prefix: str, rows: pc.Expression | None = None
) -> Iterator[Picture]:
    """Yields each figure whose column holds numbers. rows: those that count."""
    if not figures:
        return
    names = dict.fromkeys(["run", groups.axis, *(figure.column for figure in figures)])
    found = groups.drawn.table(table, [*names], rows, keys=[])
    frame = groups.placed(found.to_pandas())
    for column, title, shares in figures:
        finite = frame[np.isfinite(frame[column])]
        if finite.empty:
            continue
        lost = pc.sum(pc.invert(pc.is_finite(found[column]))).as_py()  # null is not lost, but not there
        caption = f"{lost:,} values that are NaN or infinite are left out." if lost else ""
        of_stretch = finite[column].groupby(_stretches(finite, groups.axis))
        quantiles: pd.DataFrame = of_stretch.quantile(np.array(shares)).unstack().reset_index()
        name, label = f"{prefix}-{column.replace('_', '-')}", column.replace("_", " ")
        yield lines(groups, quantiles, name, title, caption, label, *shares)


def _stretches(frame: pd.DataFrame, axis: str) -> list[pd.Series[float]]:
    """Returns the groups of rows and the middles of the stretches of an axis that they are in: rounds, or virtual
    time."""
    if axis == "round":
        width = max(1, -(-(frame["round"].max() + 1) // _STRETCHES))
        middles = frame["round"] // width * width + (width - 1) / 2
    else:
        width = frame[axis].max() / _STRETCHES or 1.0
        middles = ((frame[axis] // width).clip(upper=_STRETCHES - 1) + 0.5) * width
    return [frame["group"], middles]


# --- penalties that clients adapt -------------------------------------------------------------------------------------


def _penalties(groups: Groups) -> Iterator[Picture]:
    """Yields the figure of the penalties of all clients, where they adapt them (FedADMM-InSa)."""
    if _ADAPTED not in groups.runs.schema("updates").names:
        return
    adapted = _USED & pc.is_valid(pc.field(_ADAPTED))
    frame = groups.frame("updates", ["round", "virtual_time", "client", _ADAPTED], adapted)
    # Without a first penalty, it is a column of another algorithm that has this name.
    having = {run.id: run for run in groups.drawn.runs if run.keys.get("algorithm.beta") is not None}
    of_runs = [
        of_all_clients(having[str(run)], rows).assign(group=rows["group"].iloc[0])
        for run, rows in frame.groupby("run", observed=True)
        if run in having
    ]
    if not of_runs:
        return
    over_runs = pd.concat(of_runs).groupby(["group", "round"])
    when = frame.groupby(["group", "round"])["virtual_time"].mean()
    table = with_nan(over_runs.mean(), over_runs["mean"]).join(when).reset_index()
    caption = (
        "What clients have adapted to by the end of a round; those that have not taken part yet have the first "
        "penalty. Line: mean over all clients. Band: from the smallest to the largest."
    ) + gaps(table["mean"])
    title = "Penalties of all clients"
    yield lines(groups, table, "updates-penalties-of-all", title, caption, "penalty", "mean", "min", "max")


def of_all_clients(run: Run, rows: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean, smallest and largest penalty of a run's clients by round, NaN if one is not finite.

    rows: its updates that were used.
    """
    first = float(run.keys["algorithm.beta"] or 0)
    holders = run.table("partition", ["client"], pc.field("split") == "train")["client"]
    clients = pc.count_distinct(holders).as_py()
    clients -= int(float(run.keys.get("data.unseen") or 0) * clients + 1e-9)
    known = rows.assign(**{_ADAPTED: rows[_ADAPTED].fillna(np.inf)})  # a pivot takes NaN for no value
    adapted = known.pivot_table(index="round", columns="client", values=_ADAPTED, aggfunc="last").ffill()
    table = adapted.fillna(first).agg(["mean", "min", "max"], axis="columns")
    if fresh := clients - adapted.shape[1]:  # they never take part
        table["mean"] = (table["mean"] * (clients - fresh) + first * fresh) / clients
        table["min"], table["max"] = table["min"].clip(upper=first), table["max"].clip(lower=first)
    return table.where(np.isfinite(table["mean"])).reset_index()
