"""Reads run.json, checks the types of the values in it that are read, and says which metrics are better when they are
larger."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from results.location import reaching, require_file, why
from results.texts import quoted

CURE = "copy it again from where it is whole, or run the scenario again"


class NotARun(ValueError):
    """Raised for a folder that is not a run's, or that this version cannot read."""


_TYPES: dict[type, tuple[str, ...]] = {
    str: ("run", "status", "name", "scenario_hash", "started_at", "finished_at", "ended_early", "ended_by", "error"),
    dict: (
        *("scenario", "seconds", "totals", "rows", "holder", "digest", "versions", "git", "sweep", "depends_on"),
        *("best", "left", "diverged", "forked_from"),
    ),
    list: ("notes", "machines", "workers", "resumed"),
    int: ("seed", "parameters", "classes"),
}
"""The types of values that are read, by key. Any may be missing or null; there may be others."""
_WORDS = {str: "text", dict: "a block of keys", list: "a list", int: "an integer"}


def read_info(folder: Path) -> dict[str, Any]:
    """Returns the content of run.json, as it is. Raises NotARun where there is no such file, or it holds no object."""
    path = folder / "run.json"
    try:
        with reaching():
            content = require_file(path).read_bytes()
        info = json.loads(content)
    except OSError as error:
        raise NotARun(
            f"{folder}: a run's folder must hold run.json, which cannot be read ({why(error)}); "
            "give the folder of one run, such as runs/<id>"
        ) from error
    except (ValueError, RecursionError) as error:
        raise NotARun(f"{path}: must be JSON, got {error}; {CURE}") from error
    if not isinstance(info, dict):
        raise NotARun(f"{path}: must hold a JSON object, got {quoted(info)}; {CURE}")
    return info


def wrong_info(info: dict[str, Any]) -> list[str]:
    """Returns what is wrong with the types of values in run.json, a line for each."""
    return [
        f"{key}: must be {_WORDS[kind]}, got {quoted(info[key])}"
        for kind, keys in _TYPES.items()
        for key in keys
        if info.get(key) is not None and not isinstance(info[key], kind)
    ]


# --- metrics of runs --------------------------------------------------------------------------------------------------

LARGER_IS_BETTER = {"accuracy": True, "loss": False}
"""Whether a larger value of a metric is the better one. A metric that is missing here has no known direction."""


_SHARES = (
    *("accuracy", "balanced_accuracy", "macro_f1", "macro_precision", "macro_recall", "average_precision", "auroc"),
    *("top2", "top3", "top5", "top10", "ece", "exact_match", "f1", "iou", "dice"),
)
_RANGES = dict.fromkeys(_SHARES, (0.0, 1.0)) | dict.fromkeys(("loss", "rmse", "mae"), (0.0, math.inf))
_RANGES |= {"perplexity": (1.0, math.inf), "mcc": (-1.0, 1.0), "r2": (-math.inf, 1.0)}


def range_of(metric: str) -> tuple[float, float]:
    """Returns the least and the largest value that a metric can have, as far as that is known by its name."""
    return _RANGES.get(metric, (-math.inf, math.inf))


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
