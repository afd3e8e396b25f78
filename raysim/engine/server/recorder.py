"""Writes what happens in a run with a server as rows of its tables, and counts totals."""

from __future__ import annotations

from collections import Counter
from typing import Any

from raysim.engine import rows
from raysim.engine.recorder import Recorder
from raysim.engine.server import rows as server_rows
from raysim.workers.replies import Evaluated
from raysim.world.server_happening import Closed, Ended, Stepped
from results import Writer


class ServerRecorder(Recorder):
    """Records dispatches, server steps and evaluations."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer, "dispatched", "used", "discarded", "dropped", "unfinished", "steps", "rounds")
        self._late = 0  # updates discarded since the last step
        self._picked: Counter[int] = Counter()  # by client, how many of its updates steps have used

    def memory(self) -> dict[str, Any]:
        return {**super().memory(), "late": self._late, "picked": list(self._picked.items())}

    def recall(self, totals: dict[str, int], memory: dict[str, Any]) -> None:
        super().recall(totals, memory)
        self._late, self._picked = memory["late"], Counter(dict(memory["picked"]))

    def ended(self, ended: Ended, samples: int) -> None:
        """Writes a dispatch whose update no step uses. samples: number of samples that the client trains on."""
        self.totals.update(["dispatched", ended.status])
        self._late += ended.status == "discarded"
        self.add("updates", [server_rows.ended_row(ended, samples)])

    def stepped(
        self,
        stepped: Stepped,
        weights: list[float] | None,
        trained: list[dict[str, Any]] | None = None,
        measured: dict[str, Any] | None = None,
    ) -> None:
        """Writes a server step and the updates that it used.

        weights: the updates' weights, if they are summed. trained: for each update, the columns that training fills.
        measured: columns of the table `steps` that only a real step has. Both are None in a dry run.
        """
        used = len(stepped.members)
        updates = server_rows.used_rows(stepped, weights)
        if trained is not None:
            updates = [row | more for row, more in zip(updates, trained, strict=True)]
        self.totals.update({"dispatched": used, "used": used, "steps": 1})
        self._picked.update(dispatched.client for dispatched in stepped.members)
        self.add("updates", updates)
        self.step(server_rows.step_row(stepped, self._late) | (measured or {}))
        self._late = 0

    def searched(self, stepped: Stepped, columns: dict[str, list[float]], own: dict[str, list[float]]) -> None:
        """Writes what a search found. columns, own: lists with an element for each anchor, own ones for columns of the
        algorithm's own; {} if there was no search."""
        self.add("coefficients", server_rows.coefficient_rows(stepped, columns, own))

    def closed(self, closed: Closed) -> None:
        """Counts a round that is over, and notes why the run ends early, if it does."""
        self.totals["rounds"], self.virtual_time = closed.over, closed.time
        self.early = closed.early

    def evaluated(
        self, closed: Closed, split: str, found: Evaluated, subject: str = "global", client: int | None = None
    ) -> None:
        """Writes one evaluation of one model on one split.

        subject: whose model it is, which is "global", "client" or "unseen". client: the client's number, unless the
        model is the global one.
        """
        new = rows.evaluation_rows(closed, subject, client, split, found.values, found.samples)
        if client is not None and subject == "client":
            new = [row | {"picked": self._picked[client]} for row in new]
        self.add("evaluations", new)
