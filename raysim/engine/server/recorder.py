"""What happens on the timeline of a run with a server, as rows of the run's tables and as totals."""

from __future__ import annotations

from typing import Any

from raysim.engine import rows
from raysim.engine.recorder import Recorder
from raysim.workers.replies import MetricSums
from raysim.world.server_timeline import Closed, Ended, Stepped
from results import Writer


class ServerRecorder(Recorder):
    """Records dispatches, server steps and evaluations."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer, "dispatched", "used", "discarded", "dropped", "unfinished", "steps", "rounds")
        self._late = 0  # updates discarded since the last step

    def ended(self, ended: Ended, samples: int) -> None:
        """samples: that the client trains on."""
        self.totals.update(["dispatched", ended.status])
        self._late += ended.status == "discarded"
        self.add("updates", [rows.ended_row(ended, samples)])

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
        self.add("updates", [row | more for row, more in updates])
        self.add("steps", [rows.step_row(stepped, self._late) | (measured or {})])
        self._late = 0

    def searched(self, stepped: Stepped, columns: dict[str, list[float]]) -> None:
        """columns: of the anchors of a search, if there was one."""
        self.add("coefficients", rows.coefficient_rows(stepped, columns))

    def closed(self, closed: Closed) -> None:
        self.totals["rounds"] = closed.over
        self.early = closed.early

    def evaluated(
        self, closed: Closed, split: str, sums: MetricSums, subject: str = "global", client: int | None = None
    ) -> None:
        """sums: of each metric over `samples` of the split or, of a client's own model, of its own part of it."""
        means, samples = rows.means(sums), int(sums["samples"])
        self.add("evaluations", rows.evaluation_rows(closed, subject, client, split, means, samples))
