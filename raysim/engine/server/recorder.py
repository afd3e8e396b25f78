"""Writes what happens in a run with a server as rows of its tables, and counts totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raysim.clients.group import Architectures
from raysim.engine.progress import Happened, when
from raysim.engine.recorder import Columns, Recorder, columns_of, measured_columns
from raysim.engine.server.course import Course
from raysim.engine.server.guarantee import one_sum
from raysim.privacy.account import Account
from raysim.scenario.run_settings import RunSettings
from raysim.terms import Traffic, Weight
from raysim.workers.replies import Evaluated, Measured, Numbers, Searched, TrainedMember
from raysim.world.server_happening import Closed, Dispatched, Ended, Stepped
from results import Writer
from results.schemas import CoefficientRow


class ServerRecorder(Recorder):
    """Records dispatches, server steps and evaluations."""

    def __init__(self, writer: Writer, run: RunSettings) -> None:
        super().__init__(writer, run, "dispatched", "used", "discarded", "dropped", "unfinished", "steps", "rounds")
        self._late = 0  # updates discarded since the last step
        self._picked = np.zeros(0, np.int64)  # how many updates of each client steps have used, (clients,)
        self.account: Account | None = None  # of `privacy`

    def follows(self, course: Course) -> None:
        """Notes what is known of the run. It must be called first."""
        self.held(course.samples)
        before, self._picked = self._picked, np.zeros_like(course.samples)
        self._picked[: len(before)] = before  # of a checkpoint
        self.account = course.account
        if isinstance(course.levels, Architectures):
            self.models = course.levels.facts
        elif course.levels is not None:
            self.levels = course.levels.facts

    def memory(self) -> dict[str, Any]:
        clients = np.flatnonzero(self._picked)
        picked = zip(clients.tolist(), self._picked[clients].tolist(), strict=True)
        return {**super().memory(), "late": self._late, "picked": list(picked)}

    def recall(self, totals: dict[str, int], memory: dict[str, Any]) -> None:
        super().recall(totals, memory)
        self._late = memory["late"]
        picked = dict(memory["picked"])
        self._picked = np.array([picked.get(client, 0) for client in range(max(picked, default=-1) + 1)], np.int64)

    def ended(self, ended: Ended) -> None:
        """Writes a dispatch whose update no step uses."""
        of, samples = ended.dispatched, self._samples[ended.dispatched.client]
        self.totals.update(["dispatched", ended.status])
        self._late += ended.status == "discarded"
        if self.account and ended.arrived:
            self.account.unused(of.client)
        levels = self.levels is not None
        columns = _of_dispatches(ended, [of], ended.status, [ended.staleness], [samples], levels=levels)
        self.writer.add_columns("updates", columns)

    def stepped(
        self,
        stepped: Stepped,
        weights: Sequence[Weight] | None,
        trained: Sequence[tuple[TrainedMember, str]] = (),
        measured: Measured | None = None,
        compared: Sequence[Numbers] = (),
        foreseen: Sequence[Traffic] | None = None,
    ) -> None:
        """Writes a server step and the updates that it used.

        weights: the updates' weights, if they are summed, which the table has if they are for one sum. trained: for
        each update, what training gave, and the worker that did it; () in a dry run. measured: what only a real step
        measures and logs. compared: further columns of the updates, if they are compared. foreseen: in a dry run, the
        bytes of each update and of the message before it, if they are known.
        """
        used, arrivals = len(stepped.members), stepped.arrivals
        staleness, samples = [arrival.staleness for arrival in arrivals], [arrival.samples for arrival in arrivals]
        self.totals.update({"dispatched": used, "used": used, "steps": 1})
        levels = self.levels is not None
        alone = one_sum(weights)
        columns = _of_dispatches(stepped, stepped.members, "used", staleness, samples, alone or None, levels=levels)
        np.add.at(self._picked, columns["client"], 1)
        numbers = [one.numbers for one, _ in trained]
        own = [one.own for one in numbers]
        if trained:
            columns |= {**measured_columns(numbers), "worker": [worker for _, worker in trained]}
        if foreseen:
            columns |= {"up_bytes": [one.up for one in foreseen], "down_bytes": [one.down for one in foreseen]}
        if compared:
            own = [one | more for one, more in zip(own, compared, strict=True)]
        self.writer.add_columns("updates", columns, own)
        epsilon = self.account.step(arrivals, alone) if self.account else None
        counts = {"used": used, "discarded": self._late, "in_flight": stepped.in_flight, "samples": sum(samples)}
        clipped = [found for one in numbers if (found := one.columns.get("clipped")) is not None]
        share = sum(clipped) / len(clipped) if clipped else None
        sizes = foreseen
        if measured is not None:
            sizes = [Traffic(one.columns["up_bytes"], one.columns["down_bytes"]) for one in numbers]
        traffic = None if sizes is None else Traffic(sum(one.up for one in sizes), sum(one.down for one in sizes))
        self.step(stepped, staleness, measured, traffic, **counts, epsilon=epsilon, clipped_share=share)
        self._late = 0

    def searched(self, stepped: Stepped, searched: Searched) -> None:
        """Writes what a server's search found: a row for each anchor."""
        for place, values in enumerate(zip(*searched.columns.values(), strict=True)):
            own: Numbers = {name: column[place] for name, column in searched.own.items()}
            of = dict(zip(searched.columns, values, strict=True))
            self.writer.add(CoefficientRow(**when(stepped), **of), own)

    def exposed(self) -> None:
        """Writes how exposed each client is at the end of the run."""
        if self.account:
            self.writer.add_columns("privacy", self.account.columns(self._holders))

    @property
    def _holders(self) -> list[int]:
        """The clients that could take part."""
        return [client for client, held in enumerate(self._samples) if held]

    def outcome(self) -> dict[str, Any]:
        return super().outcome() | ({"privacy": self.account.outcome(self._holders)} if self.account else {})

    def closed(self, closed: Closed) -> None:
        """Counts the rounds that are over, and notes what ends the run, if it ends."""
        self.totals["rounds"], self.virtual_time = closed.over, closed.time
        self.early, self.ended_by = closed.early, closed.ends

    def evaluated(
        self,
        happened: Closed,
        split: str,
        found: Evaluated,
        subject: str = "global",
        member: int | None = None,
        **of: float | None,
    ) -> None:
        """Writes one evaluation of one model on one split.

        subject: whose model it is, which is "global", "slice", "group", "client" or "unseen". member: the client's
        number, or the place of the slice or group, unless the model is the global one. of: `level`, the model's width,
        where it may be another than the server's, and `group`, the place of the client's group, where models are of
        several architectures.
        """
        picked = int(self._picked[member]) if member is not None and subject == "client" else None
        whose = {"subject": subject, "member": member, "picked": picked, **of}
        self.evaluation(happened, split, found.values, found.samples, **whose)


def _of_dispatches(
    happened: Happened,
    of: Sequence[Dispatched],
    status: str,
    staleness: list[float],
    samples: list[int],
    weights: list[float] | None = None,
    *,
    levels: bool = False,
) -> Columns:
    """Returns the rows of dispatches that ended, without what training fills. levels: whether clients have levels."""
    of_fields: list[Sequence[Any]] = [*zip(*of, strict=True)] or [()] * len(Dispatched._fields)
    fields = dict(zip(Dispatched._fields, map(list, of_fields), strict=True))
    arrived = fields["arrives"]
    if status != "used":
        arrived = [d.arrives if d.reports and d.arrives <= happened.time else None for d in of]
    return {
        **columns_of(happened, len(of)),
        "virtual_time": [happened.time] * len(of),
        "client": fields["client"],
        "dispatch": fields["serial"],
        "status": [status] * len(of),
        "dispatched_at": fields["time"],
        "arrived_at": arrived,
        "version": fields["version"],
        "staleness": staleness,
        "samples": samples,
        **({} if weights is None else {"weight": weights}),
        **({"level": fields["level"]} if levels else {}),
    }
