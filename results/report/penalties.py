"""The figure of the penalties that all clients have, in algorithms whose clients adapt them (FedADMM-InSa)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from results.groups import Groups
from results.reader import Run
from results.report.draw import lines
from results.report.frames import gaps, with_nan
from results.report.picture import Picture

_ADAPTED = "next_penalty"  # the algorithm's own column: what a client has adapted to after an update


def penalties(groups: Groups) -> Iterator[Picture]:
    """Yields the figure, unless no client adapted its penalty."""
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
