"""Counts the clients in evaluations that had never taken part, and so predict with the model that they began with."""

from __future__ import annotations

import pyarrow.compute as pc

from results.run_set import RunSet


def never_picked(runs: RunSet) -> str | None:
    """Says how many clients had never taken part when they were last evaluated; None if all had in every run."""
    own = (pc.field("subject") == "client") & pc.is_valid(pc.field("picked"))
    rows = runs.pandas("evaluations", ["run", "round", "member", "picked"], own, keys=[]).astype({"run": str})
    last = rows[rows["round"] == rows.groupby("run")["round"].transform("max")]
    evaluated = last.groupby("run")["member"].nunique()
    never = last[last["picked"] == 0].groupby("run")["member"].nunique().reindex(evaluated.index, fill_value=0)
    if not never.any():
        return None
    some = f"{never.min()} to {never.max()}" if never.min() < never.max() else str(never.max())
    where = "in a run" if len(never) > 1 else "in it"
    return f"{some} of {evaluated.max()} evaluated clients never took part {where}, and count with what they began with"
