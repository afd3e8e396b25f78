"""What the recorders of both families share: they write tables, and count totals."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from actors import Job
from raysim.engine.budget import Best, RunBudget, counted
from raysim.engine.progress import Happened, when
from raysim.scenario.run_settings import RunSettings
from raysim.terms import Traffic
from raysim.workers.replies import Measured
from results import Writer
from results.rows import EvaluationRow, StepRow
from results.schemas import TaskRow
from results.writer import BUFFER_ROWS

Columns: TypeAlias = "dict[str, list[Any]]"  # some columns of rows of one table, each with a value for each row


class Diverged(Exception):
    """Ends a run after the happening in which something was not finite has been written."""


class Recorder:
    """Writes rows of a run's tables, in the order of the calls.

    totals: counts of what happened so far. virtual_time: that of the last round or step. early: why the run ended
    before all its rounds because nobody could be dispatched; None if it did not. ended_by: what ended the timeline, as
    run.json will hold it; None before that. budget: what was spent so far. best: the best evaluation. diverged: what
    was not finite first, as run.json will hold it; None if all was finite. traffic: bytes of the simulated messages
    since the run began or continued, up and down. staleness: that of the last step; None if it used nothing. levels,
    models: as run.json holds them; None where all clients train the server's model.
    """

    def __init__(self, writer: Writer, run: RunSettings, *counts: str) -> None:
        """run: how long the run lasts. counts: the names of the totals."""
        self.writer, self.budget, self.best = writer, RunBudget(run), Best(run)
        self._goes_on = run.on_divergence == "go_on"
        self._samples: list[int] = []  # number of samples that each client or peer trains on; `held` sets it
        self.totals = Counter(dict.fromkeys(counts, 0))
        self.virtual_time = 0.0
        self.early: str | None = None
        self.ended_by: str | None = None
        self.diverged: dict[str, Any] | None = None
        self.traffic: Counter[str] = Counter()
        self.staleness: float | None = None
        self.levels: dict[str, Any] | None = None
        self.models: dict[str, Any] | None = None

    def held(self, samples: NDArray[np.int64]) -> None:
        """Notes the number of samples that each client or peer trains on, (clients,). It must be called first."""
        self._samples = samples.tolist()

    def partition(self, table: dict[str, NDArray[Any]]) -> None:
        """Writes how the data are divided. table: columns of the table `partition`."""
        for start in range(0, len(table["client"]), BUFFER_ROWS):  # not all at once, as there may be millions
            cut = slice(start, start + BUFFER_ROWS)
            self.writer.add_columns("partition", {name: column[cut].tolist() for name, column in table.items()})

    def step(
        self,
        happened: Happened,
        staleness: Sequence[float],
        measured: Measured | None,
        traffic: Traffic | None,
        **columns: Any,
    ) -> None:
        """Writes a row of the table `steps`, of a server step or of a round of peers.

        staleness: of each update that it used, or the age of each message that was mixed. measured: what only a real
        step fills; None in a dry run. traffic: of the updates that it used, or of the messages of the round; None in a
        dry run that does not know it. columns: others, which follow from the timeline.
        """
        up, down = traffic or (None, None)
        found, own = measured or Measured({}, {})
        self.staleness = sum(staleness) / len(staleness) if staleness else None
        of = {"staleness_mean": self.staleness, "staleness_max": max(staleness, default=None), **columns, **found}
        self.writer.add(StepRow(**when(happened), up_bytes=up, down_bytes=down, **of), own)
        if traffic is not None:
            self.traffic.update(traffic._asdict())
            self.budget.spent.update(counted(traffic), flops=int(found.get("client_flops") or 0))
        self.virtual_time = happened.time

    def evaluation(
        self, happened: Happened, split: str, values: Mapping[str, float | None], samples: int, **columns: Any
    ) -> None:
        """Writes a row of the table `evaluations` for each metric.

        values: of each metric. samples: the number that they are means over. columns: others, on whose model it is.
        """
        for metric, value in values.items():
            of = {"metric": metric, "value": value, **columns}
            self.writer.add(EvaluationRow(**when(happened), split=split, samples=samples, **of))

    def jobs(self, happened: Happened, jobs: Sequence[Job[Any, Any]], began: float) -> None:
        """Writes the jobs of a happening. began: when the timeline began, in seconds since the epoch."""
        for job in jobs:
            _, worker, took, process = job.ended
            assert process is not None  # only the loader has none
            row = TaskRow(
                **when(happened),
                task=job.name,
                worker=worker,
                node=process.node,
                pid=process.pid,
                started_s=took.started - began,
                seconds=took.seconds,
            )
            self.writer.add(row)

    def diverge(self, happened: Happened, what: str, version: int, client: int | None = None) -> None:
        """Notes that something was not finite. To be called after all rows of the happening are written.

        what: what it was, such as "the loss of client 3". version: that of the model from which it was trained
        or, without a client, of the model itself; for a peer, how often it had mixed. Raises Diverged unless the run is
        to continue.
        """
        if self.diverged is None:
            self.diverged = {"what": what, "client": client, "version": version, **when(happened)}
        if not self._goes_on:
            raise Diverged(what)

    def memory(self) -> dict[str, Any]:
        """Returns what the recorder remembers beside the totals, as plain data, for a checkpoint."""
        return {"diverged": self.diverged, "budget": self.budget.memory(), "best": self.best.found}

    def recall(self, totals: dict[str, int], memory: dict[str, Any]) -> None:
        """Goes on from a checkpoint. totals and memory: what it holds of them."""
        self.totals.update(totals)
        self.diverged = memory["diverged"]
        self.budget.recall(memory["budget"])
        self.best.found = memory["best"]

    def outcome(self) -> dict[str, Any]:
        """Returns what run.json says of all that happened."""
        totals = {**self.totals, "virtual_time": self.virtual_time}
        ended_by = self.budget.ended_by or self.ended_by
        best = {"best": self.best.found} if self.best.found else {}
        best |= {"levels": self.levels} if self.levels else {}
        best |= {"models": self.models} if self.models else {}
        return {"totals": totals, "ended_early": self.early, "ended_by": ended_by, "diverged": self.diverged, **best}


def measured_columns(numbers: Sequence[Measured]) -> Columns:
    """Returns the columns of the table `updates` that are measured and logged, but for the algorithm's own."""
    names = dict.fromkeys(name for one in numbers for name in one.columns)
    return {name: [one.columns.get(name) for one in numbers] for name in names}


def columns_of(happened: Happened, rows: int) -> Columns:
    """Returns the columns that all rows of a happening have. rows: how many there are."""
    return {"step": [happened.version] * rows, "round": [happened.round] * rows}


def numbers(values: dict[str, float | None]) -> dict[str, float]:
    """Returns the values of metrics for those who watch a run, with NaN where one is not defined."""
    return {metric: math.nan if value is None else value for metric, value in values.items()}


def times(passes: float, flops: float | None) -> float | None:
    """Returns the operations of so many forward passes. flops: those of one; None if they cannot be counted."""
    return None if flops is None else passes * flops
