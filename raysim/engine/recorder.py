"""What the recorders of both families share: a writer of tables, and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from actors import Job
from raysim.engine import rows
from results import Writer


class Recorder:
    """Writes rows in the order of the calls.

    totals: what happened so far, as run.json says it. early: why the run ended before all its rounds, if it did.
    """

    def __init__(self, writer: Writer, *counts: str) -> None:
        """counts: the names of the totals."""
        self.writer = writer
        self.totals = Counter(dict.fromkeys(counts, 0))
        self.early: str | None = None

    def partition(self, table: dict[str, NDArray[Any]]) -> None:
        """table: columns of who holds how much of what."""
        self.add("partition", rows.partition_rows(table))

    def tasks(self, happened: rows.Happened, jobs: Sequence[Job[Any]], began: float) -> None:
        """jobs: what was done for it. began: when the run's first job was handed out, in seconds since the epoch."""
        self.add("tasks", rows.task_rows(happened, jobs, began))

    def add(self, table: str, new: list[rows.Row]) -> None:
        """Writes rows of a table."""
        for row in new:
            self.writer.add(table, row)
