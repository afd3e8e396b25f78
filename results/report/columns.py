"""The sections on columns of tables: what training reported of the updates that were used, and algorithms' own."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from results.groups import Groups
from results.reader import Run
from results.report.draw import lines
from results.report.frames import gaps, quantiles, with_nan, without
from results.report.picture import Picture
from results.report.section import Section
from results.schemas import OWN, TABLES

_SHOWN = {
    "loss_before": "Loss before training",
    "loss_after": "Loss after training",
    "local_steps": "Local steps",
    "weight": "Weight in the server's sum",
    "residual": "Residual of the local problem",
    "tolerance": "Tolerance of the local problem",
    "penalty": "Penalty of ADMM",
}

_ADAPTED = "next_penalty"  # the algorithm's own column: what a client has adapted to after an update


def updates(groups: Groups) -> Section | None:
    """Returns the section; None if no update was used, or nothing was reported of any."""
    pictures = list(_pictures(groups, "updates", _SHOWN, "updates", pc.field("status") == "used"))
    if not pictures:
        return None
    text = (
        "The updates that were used, of all runs of a group together. Line: median. Band: from their 10 % to their "
        "90 % quantile."
    )
    return Section("updates", "Updates", text, [*pictures, *_penalties(groups)])


def own_columns(groups: Groups) -> Section | None:
    """Returns the section on the columns that algorithms define themselves; None if there is no such column."""
    pictures: list[Picture] = []
    for table in OWN:
        names = [name for name in groups.runs.schema(table).names if name not in TABLES[table].names]
        titles = {name: f"{name.replace('_', ' ').capitalize()} of {table}" for name in names}
        pictures += _pictures(groups, table, titles, f"own-{table}") if titles else ()
    if not pictures:
        return None
    text = (
        "Numbers that the algorithms logged, of all runs of a group together. Line: median over the rows of a round or "
        "stretch of time. Band: from their 10 % to their 90 % quantile."
    )
    return Section("own-columns", "The algorithms' own columns", text, pictures)


def _pictures(
    groups: Groups, table: str, titles: Mapping[str, str], prefix: str, rows: pc.Expression | None = None
) -> Iterator[Picture]:
    """Yields a figure for each of these columns that holds numbers. titles: by column. rows: those that count."""
    frame, values = (
        groups.frame(table, [groups.axis, *titles], rows),
        groups.drawn.table(table, [*titles], rows, keys=[]),
    )
    for name, title in titles.items():
        found, label = quantiles(frame, groups.axis, name, 0.1, 0.5, 0.9), name.replace("_", " ")
        if len(found):
            lost = pc.sum(pc.invert(pc.is_finite(values[name]))).as_py()  # null is not lost, but not there
            file = f"{prefix}-{name.replace('_', '-')}"
            yield lines(groups, found, file, title, without(lost or 0), label, 0.5, 0.1, 0.9)


def _penalties(groups: Groups) -> Iterator[Picture]:
    """Yields the figure of the penalties of all clients, where they adapt them (FedADMM-InSa)."""
    if _ADAPTED not in groups.runs.schema("updates").names:
        return
    adapted = (pc.field("status") == "used") & pc.is_valid(pc.field(_ADAPTED))
    frame = groups.frame("updates", ["round", "virtual_time", "client", _ADAPTED], adapted)
    of_runs = [
        of_all_clients(run, rows).assign(group=group.place)
        for group in groups.groups
        for run in group.drawn
        if run.keys.get("algorithm.beta") is not None  # else it is a column of another algorithm that has this name
        if (rows := frame[frame["run"] == run.id]).size
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
