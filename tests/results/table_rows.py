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
