"""Rows of tables, and runs that are written of them."""

import math
from pathlib import Path
from typing import Any

from results import Run, Writer
from results.rows import UpdateRow

NEVER = 1e9  # seconds between flushes


def update(dispatch: Any, **changes: Any) -> dict[str, Any]:
    row = {
        "step": dispatch // 2,
        "round": dispatch // 2,
        "virtual_time": dispatch / 3,
        "client": dispatch % 5,
        "dispatch": dispatch,
        "status": "used",
        "dispatched_at": dispatch / 4,
        "arrived_at": dispatch / 3,
        "version": 0,
        "staleness": 1.0,
        "weight": 0.5,
        "samples": 10,
        "local_steps": 3,
        "seconds": 0.01,
        "worker": "client-0",
    }
    return row | changes


def step(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "step": number,
        "round": number,
        "virtual_time": float(number),
        "used": 2,
        "discarded": 0,
        "in_flight": 3,
        "staleness_mean": 1.0,
        "staleness_max": 2.0,
        "up_bytes": 100,
        "down_bytes": 200,
        "samples": 20,
        "seconds": 0.5,
        "elapsed_s": 0.6 * number,
    }
    return row | changes


def evaluation(number: int, subject: str, member: int | None, metric: str, value: float) -> dict[str, Any]:
    when = {"step": number, "round": number, "virtual_time": float(number)}
    what = {"subject": subject, "member": member, "split": "test", "metric": metric, "value": value, "samples": 10}
    return when | what


def written(folder: Path, rows: list[dict[str, Any]], flush_after: tuple[int, ...] = (), run: str = "r") -> Writer:
    """A writer that was given update rows, and flushed after those places."""
    writer = Writer(folder, run, flush_seconds=NEVER)
    for place, row in enumerate(rows):
        writer.add(UpdateRow(**row))
        if place in flush_after:
            writer.flush()
    return writer


ROWS = [update(k, loss_before=(None, 0.0, math.nan)[k % 3], up_bytes=(None, 0)[k % 2]) for k in range(12)]


def dispatches(folder: Path) -> list[int]:
    return [int(number) for number in Run(folder).table("updates", ["dispatch"])["dispatch"].to_numpy()]
