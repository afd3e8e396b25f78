"""What the recorders of both families share: they write tables, count totals, and note what was spent and how good the
model is."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actors import Job
from raysim.engine import rows
from raysim.parts.errors import BadInput
from raysim.scenario.run_settings import TRAVELS, RunSettings
from raysim.terms import Traffic
from raysim.workers.replies import Measured
from results import Writer
from results.info import directions
from results.rows import EvaluationRow, StepRow
from results.schemas import TaskRow
from results.writer import BUFFER_ROWS

SPENT = (*TRAVELS, "flops")  # what is counted as it is spent, by its key of `run.until`


class RunBudget:
    """What a run has spent, and how good its model was at the last evaluation and before.

    All of it is known in the timeline's order, so a run ends at the same place on any number of workers.

    spent: so far, by name. ended_by: the key of `run.until` that ends the run with the last evaluation; None if
    the run continues.
    """

    def __init__(self, run: RunSettings) -> None:
        self._until, self._endless = run.until, math.isinf(min(run.horizon[:3]))
        self._metric = run.until.metric if run.until else None
        self._larger = directions({"larger_is_better": run.directions}).get(self._metric or "")
        self.spent = Counter(dict.fromkeys(SPENT, 0))
        self._last: dict[str, float] = {}  # what was spent by the last evaluation
        self._value = math.nan  # of the metric, at the last evaluation
        self._best: float | None = None
        self._since = 0  # evaluations in a row in which the metric was no better than the best before

    def evaluated(self, metrics: Mapping[str, float] | None) -> None:
        """Notes an evaluation. metrics: None in a dry run. Raises BadInput if it has not the metric."""
        self._last = dict(self.spent)
        if self._metric is None or metrics is None:
            return
        self._value = _value(metrics, self._metric, "run.until.metric")
        better = _is_better(self._value, self._best, larger=self._larger)
        self._best, self._since = (self._value, 0) if better else (self._best, self._since + 1)

    def require_countable(self, flops: float | None) -> None:
        """Raises BadInput if operations end the run, and cannot be counted. flops: those of a forward pass."""
        if self._until and self._until.flops is not None and not flops:
            text = "needs a model whose passes can be counted, by its matrix products and convolutions, got one without"
            raise BadInput("run.until.flops", f"{text}; take bytes or virtual_time instead")

    def require_traffic(self, tensors: Traffic) -> None:
        """Raises BadInput if bytes alone end the run, and nothing travels that they count. tensors: of an update, or a
        message."""
        counted = _counted(tensors)
        if self._endless and self._until and not any(counted.get(key, 1) for key in self._until.budgets):
            text = "must have another key in addition to bytes where clients send and receive nothing, got none"
            raise BadInput("run.until", f"{text}; add virtual_time or updates, or run.rounds")

    @property
    def ended_by(self) -> str | None:
        until = self._until
        if until is None or not self._last:
            return None
        for key in SPENT:
            if key in until.budgets and self._last[key] >= until.budgets[key]:
                return key
        if until.at_least is not None and self._value >= until.at_least:
            return "at_least"
        if until.at_most is not None and self._value <= until.at_most:
            return "at_most"
        return "patience" if until.patience is not None and self._since >= until.patience else None

    def memory(self) -> dict[str, Any]:
        """Returns all that it has noted, as plain data, for a checkpoint."""
        noted = {"last": self._last, "value": self._value, "best": self._best, "since": self._since}
        return {"spent": dict(self.spent), **noted}

    def recall(self, memory: dict[str, Any]) -> None:
        """Goes on from what `memory` returned."""
        self.spent.update(memory["spent"])
        self._last, self._value, self._best = memory["last"], memory["value"], memory["best"]
        self._since = memory["since"]


class Best:
    """The best evaluation so far. The first of equally good ones counts.

    found: what run.json says of it; None before the first evaluation, and if no metric is asked for.
    """

    def __init__(self, run: RunSettings) -> None:
        self._split, _, self._metric = (run.keep_best or "").partition(" ")
        self._larger = directions({"larger_is_better": run.directions}).get(self._metric)
        self.found: dict[str, Any] | None = None

    def evaluated(self, metrics: Mapping[str, float], when: Mapping[str, Any]) -> bool:
        """Notes an evaluation, and returns whether it is the best so far. when: its step, round and virtual time.

        Raises BadInput if it has not the metric.
        """
        if not self._metric:
            return False
        value = _value(metrics, self._metric, "run.keep_best")
        before = self.found["value"] if self.found else None
        if not _is_better(value, before, larger=self._larger):
            return False
        self.found = {"split": self._split, "metric": self._metric, "value": value, **when}
        return True


def _counted(traffic: Traffic) -> dict[str, int]:
    return dict(zip(TRAVELS, (sum(traffic), *traffic), strict=True))


def _value(metrics: Mapping[str, float], metric: str, key: str) -> float:
    """Returns an evaluation's value of a metric. Raises BadInput for the key that names it if it has none."""
    if metric not in metrics:
        raise BadInput(key, f"must name one of {', '.join(metrics)}, which this run evaluates, got {metric!r}")
    return metrics[metric]


def _is_better(value: float, before: float | None, *, larger: bool | None) -> bool:
    """Returns whether a metric is better than the best one before, None if there was none. What is not a number never
    is. larger: whether larger values are better."""
    if math.isnan(value) or before is None:
        return not math.isnan(value)
    return value > before if larger else value < before


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
        happened: rows.Happened,
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
        self.writer.add(StepRow(**rows.when(happened), up_bytes=up, down_bytes=down, **of), own)
        if traffic is not None:
            self.traffic.update(traffic._asdict())
            self.budget.spent.update(_counted(traffic), flops=int(found.get("client_flops") or 0))
        self.virtual_time = happened.time

    def evaluation(
        self, happened: rows.Happened, split: str, values: Mapping[str, float | None], samples: int, **columns: Any
    ) -> None:
        """Writes a row of the table `evaluations` for each metric.

        values: of each metric. samples: the number that they are means over. columns: others, on whose model it is.
        """
        for metric, value in values.items():
            of = {"metric": metric, "value": value, **columns}
            self.writer.add(EvaluationRow(**rows.when(happened), split=split, samples=samples, **of))

    def jobs(self, happened: rows.Happened, jobs: Sequence[Job[Any, Any]], began: float) -> None:
        """Writes the jobs of a happening. began: when the timeline began, in seconds since the epoch."""
        for job in jobs:
            _, worker, took, process = job.ended
            assert process is not None  # only the loader has none
            row = TaskRow(
                **rows.when(happened),
                task=job.name,
                worker=worker,
                node=process.node,
                pid=process.pid,
                started_s=took.started - began,
                seconds=took.seconds,
            )
            self.writer.add(row)

    def diverge(self, happened: rows.Happened, what: str, version: int, client: int | None = None) -> None:
        """Notes that something was not finite. To be called after all rows of the happening are written.

        what: what it was, such as "the loss of client 3". version: that of the model from which it was trained
        or, without a client, of the model itself; for a peer, how often it had mixed. Raises Diverged unless the run is
        to continue.
        """
        if self.diverged is None:
            self.diverged = {"what": what, "client": client, "version": version, **rows.when(happened)}
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
