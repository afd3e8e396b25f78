"""What a run has spent, and how good its model is: whether its budget ends it, and which evaluation was the best."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from raysim.parts.errors import BadInput
from raysim.scenario.run_settings import TRAVELS, RunSettings
from raysim.terms import Traffic
from results.info import directions

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
        travels = counted(tensors)
        if self._endless and self._until and not any(travels.get(key, 1) for key in self._until.budgets):
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


def counted(traffic: Traffic) -> dict[str, int]:
    """Returns bytes by their key of `run.until`."""
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
