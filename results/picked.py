"""Clients that never took part, and so predict with what they began with: how many of them an evaluation counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from results.runs import Runs


def never_picked(runs: Runs) -> str | None:
    """Says how many clients had never taken part when they were last evaluated; None if all had in every run."""
    own = (pc.field("subject") == "client") & pc.is_valid(pc.field("picked"))
    rows = runs.table("evaluations", ["run", "round", "member", "picked"], own, keys=[])
    counts = [_count(rows.filter(pc.equal(rows["run"].cast(pa.string()), run.id))) for run in runs.runs]
    never = [missing for missing, clients in counts if clients]
    if not any(never):
        return None
    clients = max(clients for _, clients in counts)
    some = f"{min(never)} to {max(never)}" if min(never) < max(never) else str(max(never))
    where = "in a run" if len(never) > 1 else "in it"
    return f"{some} of {clients} evaluated clients never took part {where}, and count with what they began with"


def _count(of_run: pa.Table) -> tuple[int, int]:
    """Returns how many clients had never taken part at a run's last evaluation, and how many were evaluated."""
    last = of_run.filter(pc.equal(of_run["round"], pc.max(of_run["round"])))
    never = last.filter(pc.equal(last["picked"], 0))
    return pc.count_distinct(never["member"]).as_py(), pc.count_distinct(last["member"]).as_py()
