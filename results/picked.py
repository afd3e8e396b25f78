"""Counts the clients in evaluations that had never taken part, and so predict with the model that they began with."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from results.run_set import RunSet


def never_picked(runs: RunSet) -> str | None:
    """Says how many clients had never taken part when they were last evaluated; None if all had in every run."""
    own = (pc.field("subject") == "client") & pc.is_valid(pc.field("picked"))
    rows = runs.table("evaluations", ["run", "round", "member", "picked"], own, keys=[])
    rows = rows.set_column(0, "run", rows["run"].cast(pa.string()))
    ends = rows.group_by("run").aggregate([("round", "max")])
    last = rows.join(ends, ["run", "round"], ["run", "round_max"], "left semi")
    evaluated = _clients(last)
    if not evaluated:
        return None
    missing = _clients(last.filter(pc.equal(last["picked"], 0)))
    never = [missing.get(run, 0) for run in evaluated]
    if not any(never):
        return None
    clients = max(evaluated.values())
    some = f"{min(never)} to {max(never)}" if min(never) < max(never) else str(max(never))
    where = "in a run" if len(never) > 1 else "in it"
    return f"{some} of {clients} evaluated clients never took part {where}, and count with what they began with"


def _clients(rows: pa.Table) -> dict[str, int]:
    """Returns how many clients there are in the rows of each run."""
    counts = rows.group_by("run").aggregate([("member", "count_distinct")])
    return dict(zip(counts["run"].to_pylist(), counts["member_count_distinct"].to_pylist(), strict=True))
