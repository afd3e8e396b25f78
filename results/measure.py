"""The numbers by which runs are compared."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from results.metrics import directions

# Metrics that are totals of a whole run, and not evaluations of a model. seconds: real time.
TOTALS = ("virtual_time", "up_bytes", "down_bytes", "local_steps", "seconds")
_SUBJECTS = ("global", "client", "unseen", "peer")
QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
_OVER = ("mean", "micro", "min", "max", "gap", *QUANTILES)
_OF_LAST = re.compile(r"(max|min|mean)_of_last_([1-9]\d*)")
_AGGREGATES: dict[str, Callable[[list[float]], float]] = {"max": np.max, "min": np.min, "mean": np.mean}


class NotComparable(ValueError):
    """Raised where runs cannot be compared in the way that was asked for."""


@dataclass(frozen=True)
class Measure:
    """How a run's evaluations become one number. Raises NotComparable for settings that make no sense together."""

    metrics: tuple[str, ...] = ("accuracy",)
    """Names of evaluated metrics, or of totals of a run (TOTALS)."""
    reduce: str = "last"
    """How to take one number from the evaluations of a run: last, best, max_of_last_K, min_of_last_K or mean_of_last_K.
    Where there are fewer than K evaluations, all are taken."""
    targets: tuple[tuple[str, float], ...] = ()
    """Metrics and values to reach, such as ("accuracy", 0.8)."""
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
    picked: bool = False
    """Whether clients that had not taken part by an evaluation are left out of it."""

    def __post_init__(self) -> None:
        for name, allowed in (("subject", _SUBJECTS), ("over", _OVER)):
            if (value := getattr(self, name)) not in allowed:
                raise NotComparable(f"{name}: must be one of {', '.join(allowed)}, got {value!r}")
        if self.subject == "global" and self.over != "mean":
            raise NotComparable(
                f"over: must be mean for the global model, of which there is one, got {self.over!r}; "
                "add --subject client or peer"
            )
        if self.picked and self.subject != "client":
            raise NotComparable(
                f"picked: must be given for subject client only, whose models it is about, got {self.subject!r}; "
                "add --subject client, or leave --picked out"
            )
        if self.reduce not in ("last", "best") and not _OF_LAST.fullmatch(self.reduce):
            raise NotComparable(
                "reduce: must be last, best, max_of_last_K, min_of_last_K or mean_of_last_K, K from 1, "
                f"got {self.reduce!r}; for example max_of_last_5"
            )
        unclear = [metric for metric in self.evaluated if self.larger_is_better(metric) is None]
        if self.reduce == "best" and unclear:
            raise NotComparable(
                f"reduce: must not be best for {unclear[0]!r}, for it is not known whether larger is better; "
                "use max_of_last_K or min_of_last_K"
            )
        for metric, value in self.targets:
            if self.larger_is_better(metric) is None or not math.isfinite(value):
                names = " or ".join(self.larger)
                raise NotComparable(f"target: must be a number for {names}, got {metric}={value:g}")

    @property
    def evaluated(self) -> list[str]:
        """The metrics that are evaluated, without the totals."""
        return [metric for metric in self.metrics if metric not in TOTALS]

    def larger_is_better(self, metric: str) -> bool | None:
        """Whether a larger number is the better one; None where that is not known.

        A small gap between members is better than a large one, whatever the metric.
        """
        return False if metric in self.larger and self.over == "gap" else self.larger.get(metric)

    def of(self, metric: str, values: list[float]) -> float:
        """Reduces a metric's values (in order of evaluation) to one number. Only `best` leaves NaN out."""
        if self.reduce == "last":
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
        if self.subject == "global":
            return f"{which} of the global model, split {self.split}"
        members = "unseen clients" if self.subject == "unseen" else f"{self.subject}s"
        members += " that had taken part" if self.picked else ""
        over = "mean weighted by samples" if self.over == "micro" else f"unweighted {self.over}"
        return f"{which}, {over} over {members}, split {self.split}"


def parse_target(text: str) -> tuple[str, float]:
    """Returns the metric and value of a target such as "accuracy=0.8". Raises NotComparable for any other text."""
    metric, _, value = text.partition("=")
    try:
        return metric.strip(), float(value)
    except ValueError:
        raise NotComparable(f"target: must be metric=number, such as accuracy=0.8, got {text!r}") from None
