"""What happens on a timeline, as rows of the run's tables and as totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from actors import Job
from raysim.engine import rows
from raysim.world.server_timeline import Closed, Ended, Stepped
from results import Writer


class Recorder:
    """Writes rows, in the order of the calls. totals: what run.json says; early: why the run ended early, if it did."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.totals = Counter(dispatched=0, used=0, discarded=0, dropped=0, unfinished=0, steps=0, rounds=0)
        self.early: str | None = None
        self._late = 0  # updates discarded since the last step

    def partition(self, table: dict[str, NDArray[Any]]) -> None:
        """table: columns of who holds how much of what."""
        self._add("partition", rows.partition_rows(table))

    def ended(self, ended: Ended, samples: int) -> None:
        """samples: that the client trains on."""
        self.totals.update(["dispatched", ended.status])
        self._late += ended.status == "discarded"
        self._add("updates", [rows.ended_row(ended, samples)])

    def stepped(
        self,
        stepped: Stepped,
        weights: list[float] | None,
        trained: list[dict[str, Any]] | None = None,
        measured: dict[str, Any] | None = None,
    ) -> None:
        """trained: what training gave, a row a member; measured: of the step. None of them where nothing is trained."""
        used = len(stepped.members)
        updates = zip(rows.used_rows(stepped, weights), trained or [{}] * used, strict=True)
        self.totals.update({"dispatched": used, "used": used, "steps": 1})
        self._add("updates", [row | more for row, more in updates])
        self._add("steps", [rows.step_row(stepped, self._late) | (measured or {})])
        self._late = 0

    def searched(self, stepped: Stepped, columns: dict[str, list[float]]) -> None:
        """columns: of the anchors of a search, if there was one."""
        self._add("coefficients", rows.coefficient_rows(stepped, columns))

    def closed(self, closed: Closed) -> None:
        self.totals["rounds"] = closed.over
        self.early = closed.early

    def evaluated(
        self, closed: Closed, split: str, sums: dict[str, float], subject: str = "global", client: int | None = None
    ) -> None:
        """sums: of each metric over `samples` of the split or, of a client's own model, of its own part of it."""
        means, samples = rows.means(sums), int(sums["samples"])
        self._add("evaluations", rows.evaluation_rows(closed, subject, client, split, means, samples))

    def worked(self, happening: Stepped | Closed, jobs: Sequence[Job], started: float) -> None:
        """jobs: what was done for it. started: when the first task of the run was, in seconds since the epoch."""
        self._add("tasks", rows.task_rows(happening, jobs, started))

    def _add(self, table: str, new: list[rows.Row]) -> None:
        for row in new:
            self.writer.add(table, row)
