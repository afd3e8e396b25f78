"""Which metrics are better when they are larger."""

from collections.abc import Mapping
from typing import Any

LARGER_IS_BETTER = {"accuracy": True, "loss": False}
"""Whether a larger value of a metric is the better one. A metric that is missing here has no known direction."""


def own_metrics(info: Mapping[str, Any]) -> dict[str, bool | None]:
    """Returns a run's own metrics, from its run.json: whether larger is better, None where that is not known."""
    return dict(info.get("larger_is_better") or {})


def directions(*infos: Mapping[str, Any]) -> dict[str, bool]:
    """Returns whether larger is better for the metrics above and for own ones of runs, given their run.json.

    A run's own metric is left out if its direction is not known, or if the runs disagree on it.
    """
    found: dict[str, set[bool | None]] = {}
    for info in infos:
        for metric, larger in own_metrics(info).items():
            found.setdefault(metric, set()).add(larger)
    agreed = {metric: said.pop() for metric, said in found.items() if len(said) == 1}
    return LARGER_IS_BETTER | {metric: larger for metric, larger in agreed.items() if larger is not None}
