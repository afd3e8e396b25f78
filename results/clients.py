"""Joins the tables of runs to a row for each client."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import pyarrow.compute as pc

from results.readings import last, values
from results.run_set import RunSet

_MEMBER = ["run", "client"]


def clients(runs: RunSet, metric: str, keys: Iterable[str] | None = None) -> pd.DataFrame:
    """Returns what `Runs.clients` says."""
    held = runs.pandas("partition", ["run", "client", "label", "samples"], pc.field("split") == "train", keys=keys)
    extra = [name for name in held if name not in ("run", "client", "label", "samples")]
    named = held[["run", *extra]].drop_duplicates()
    of_client = held[held["samples"] > 0].groupby(_MEMBER, observed=True)
    table = of_client.agg(samples=("samples", "sum"), labels=("label", "nunique"))
    updates = runs.pandas("updates", ["run", "client", "status", "staleness"], keys=[])
    used = updates[updates["status"] == "used"].groupby(_MEMBER, observed=True)
    table = table.join(updates.groupby(_MEMBER, observed=True).size().rename("picked"), how="outer")
    table = table.join(used.agg(used=("staleness", "size"), staleness=("staleness", "mean")))
    counts = ["samples", "labels", "picked", "used"]
    table[counts] = table[counts].fillna(0).astype("int64")
    own = values(runs, [metric], ["client", "unseen", "peer"], ["test"]).to_pandas()
    ends = last(own, "run", "member").rename(columns={"member": "client"}).set_index(_MEMBER)
    table = table.join(ends["value"].rename(metric))
    return table.reset_index().merge(named, on="run", how="left")[["run", *extra, "client", *table.columns]]
