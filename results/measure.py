"""The numbers by which runs are compared."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from results.info import directions
from results.readings import COSTS, OVER
from results.texts import in_bytes, in_full, quoted

# Metrics that are totals of a whole run, and not evaluations of a model. staleness: mean over the updates used.
# seconds: real time. epsilon: of the most exposed client.
TOTALS = ("virtual_time", "up_bytes", "down_bytes", "local_steps", "staleness", "epsilon", "seconds")
SUBJECTS = ("global", "slice", "group", "client", "unseen", "peer")
_BEST = ("best", "at_best_validation")
_OF_LAST = re.compile(r"(max|min|mean)_of_last_([1-9]\d*)")
_AGGREGATES: dict[str, Callable[[list[float]], float]] = {"max": np.max, "min": np.min, "mean": np.mean}

Budget: TypeAlias = tuple[str, float | Literal["common"]]
"""A cost, and how much of it; common: as much as all runs that are over have spent."""


class NotComparable(ValueError):
    """Raised where runs cannot be compared in the way that was asked for."""


@dataclass(frozen=True)
class Measure:
    """How a run's evaluations become one number. Raises NotComparable for settings that make no sense together."""

    metrics: tuple[str, ...] = ("accuracy",)
    """Names of evaluated metrics, or of totals of a run (TOTALS)."""
    reduce: str = "last"
    """How to take one number from the evaluations of a run: last, best, at_best_validation, max_of_last_K,
    min_of_last_K or mean_of_last_K. Where there are fewer than K evaluations, all are taken. at_best_validation: the
    value of the evaluation that is best on the validation split."""
    targets: tuple[tuple[str, float], ...] = ()
    """Metrics and values to reach, such as ("accuracy", 0.8)."""
    costs: tuple[str, ...] = ("rounds", "virtual_time", "bytes")
    """What is told of the way to a target, of COSTS. A run that never reaches it is censored: it counts with what it
    had spent by its last evaluation, which its cost is above."""
    at: tuple[str, float] | None = None
    """A budget, such as ("virtual_time", 3600): later evaluations do not count. None: all count."""
    subject: str = "global"
    """Whose model was evaluated: global, client, unseen or peer."""
    split: str = "test"
    """The samples that it was evaluated on: test, train or validation."""
    over: str = "mean"
    """How to take one number from the clients or peers of an evaluation: mean, their plain mean; micro, their mean
    weighted by the samples that each is evaluated on; min; max; gap, which is max - min; p10, p50 or p90, a
    percentile. It is NaN if one of them has NaN."""
    larger: Mapping[str, bool] = field(default_factory=directions)
    """By metric, whether larger is better, as `directions` gives it for the runs."""

    def __post_init__(self) -> None:
        require_of("subject", self.subject, SUBJECTS)
        require_of("over", self.over, OVER)
        for name, cost in [("cost", cost) for cost in self.costs] + ([("at", self.at[0])] if self.at else []):
            require_of(name, cost, COSTS)
        if wrong := next(self._faults(), None):
            raise NotComparable(wrong)

    def _faults(self) -> Iterator[str]:
        """Yields what is wrong with values that are right by themselves."""
        if self.subject == "global" and self.over != "mean":
            text = f"must be mean for the global model, of which there is one, got {self.over!r}"
            yield f"over: {text}; add --subject client or peer"
        if self.reduce not in ("last", *_BEST) and not _OF_LAST.fullmatch(self.reduce):
            text = f"must be last, {', '.join(_BEST)}, max_of_last_K, min_of_last_K or mean_of_last_K, K from 1"
            yield f"reduce: {text}, got {self.reduce!r}; for example max_of_last_5"
        unclear = [metric for metric in self.evaluated if self.larger_is_better(metric) is None]
        if self.reduce in _BEST and unclear:
            text = f"must not be {self.reduce} for {unclear[0]!r}, because it is not known whether larger is better"
            yield f"reduce: {text}; use max_of_last_K or min_of_last_K"
        if self.reduce == "at_best_validation" and self.split == "validation":
            text = "must be another one than that by which at_best_validation picks, got validation"
            yield f"split: {text}; take test, or reduce best"
        if self.at and not (math.isfinite(self.at[1]) and self.at[1] > 0):
            yield f"at: must be more than 0, got {self.at[0]}={self.at[1]:g}"
        if self.at and "seconds" in self.metrics:
            yield "metric: must not be seconds with `at`, because real time is known of whole runs only"
        for metric, value in self.targets:
            if self.larger_is_better(metric) is None or not math.isfinite(value):
                yield f"target: must be a number for {' or '.join(self.larger)}, got {metric}={value:g}"

    @property
    def evaluated(self) -> list[str]:
        """The metrics that are evaluated, without the totals."""
        return [metric for metric in self.metrics if metric not in TOTALS]

    def larger_is_better(self, metric: str) -> bool | None:
        """Whether a larger number is the better one; None where that is not known.

        A small gap between members is better than a large one, whatever the metric.
        """
        return False if metric in self.larger and self.over == "gap" else self.larger.get(metric)

    def reduced(self, metric: str, values: list[float]) -> float:
        """Reduces a metric's values (in order of evaluation) to one number. Only `best` leaves NaN out. For
        at_best_validation, the values must be those of the evaluations up to the one that it picks."""
        if self.reduce in ("last", "at_best_validation"):
            return values[-1]
        if self.reduce == "best":
            numbers = [value for value in values if not math.isnan(value)]
            return (max if self.larger_is_better(metric) else min)(numbers, default=math.nan)
        match = _OF_LAST.fullmatch(self.reduce)
        assert match  # checked when this was made
        return float(_AGGREGATES[match[1]](values[-int(match[2]) :]))

    @property
    def text(self) -> str:
        """Says in words how evaluations became a number."""
        match = _OF_LAST.fullmatch(self.reduce)
        which = f"{match[1]} of the last {match[2]} evaluations" if match else f"{self.reduce} evaluation"
        if self.reduce == "at_best_validation":
            which = "evaluation that is best on validation"
        if self.split == "test" and (self.reduce == "best" or (match and match[1] != "mean")):
            which += " (picked on test itself)"
        if self.at:
            which += f" with {self.at[0].replace('_', ' ')} at most {in_full(self.at[1])}"
        if self.subject == "global":
            return f"{which} of the global model, split {self.split}"
        members = "unseen clients" if self.subject == "unseen" else f"{self.subject}s"
        over = "mean weighted by samples" if self.over == "micro" else f"unweighted {self.over}"
        return f"{which}, {over} over {members}, split {self.split}"


def require_of(key: str, value: str, allowed: Collection[str]) -> None:
    """Raises NotComparable for a value that is not allowed."""
    if value not in allowed:
        raise NotComparable(f"{key}: must be one of {', '.join(allowed)}, got {quoted(value)}")


def parse_target(text: str) -> tuple[str, float]:
    """Returns the metric and value of a target such as "accuracy=0.8". Raises NotComparable for any other text."""
    return _pair(text, "target", "metric=number, such as accuracy=0.8")


def parse_at(text: str) -> Budget:
    """Returns the cost and value of a budget such as "bytes=1GB" or "bytes=common". Raises NotComparable for any other
    text."""
    cost, _, value = text.partition("=")
    if value.strip() == "common":
        return cost.strip(), "common"
    return _pair(text, "at", "cost=number or cost=common, such as virtual_time=3600 or bytes=5MB")


def _pair(text: str, name: str, wanted: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    try:
        return key.strip(), float(in_bytes(value) if "bytes" in key else value)
    except ValueError:
        raise NotComparable(f"{name}: must be {wanted}, got {text!r}") from None
