"""Remembers the best evaluation of a run, for `run.keep_best`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from raysim.parts.errors import BadInput
from raysim.scenario.schema import RunSettings
from results.metrics import directions


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
        if self._metric not in metrics:
            text = f"must name one of {', '.join(metrics)}, which this run evaluates, got {self._metric!r}"
            raise BadInput("run.keep_best", text)
        value, before = metrics[self._metric], self.found["value"] if self.found else None
        if not is_better(value, before, larger=self._larger):
            return False
        self.found = {"split": self._split, "metric": self._metric, "value": value, **when}
        return True


def is_better(value: float, before: float | None, *, larger: bool | None) -> bool:
    """Returns whether a metric is better than the best one before, None if there was none. What is not a number never
    is. larger: whether larger values are better."""
    if math.isnan(value) or before is None:
        return not math.isnan(value)
    return value > before if larger else value < before
