"""What predicting the same for every sample would score, beside which runs are compared: did anything learn?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from results.keys import Value
from results.measure import Measure
from results.reader import Run
from results.readings import readings
from results.run_set import RunSet

_NAMES = {"accuracy": "the majority class", "loss": "the best constant prediction"}
_ERRORS = 3  # standard errors of the test samples by which an accuracy must be better than the majority class


def constant(run: Run, metric: str, measure: Measure) -> float | None:
    """Returns a metric of the best constant prediction on a run's test samples: the majority class, or the mean target.
    None where run.json does not say, or models were evaluated on other samples."""
    if (measure.subject, measure.split) != ("global", "test"):
        return None
    found = ((run.info.get("data") or {}).get("constant") or {}).get(metric)
    return None if found is None else float(found)


def learned(runs: Sequence[Run], numbers: Mapping[str, float], metric: str, measure: Measure) -> bool:
    """Whether the mean of runs is better than constant predictions; an accuracy by more than three standard errors, as
    small as test sets are. True where that is not known."""
    pairs = [(numbers[run.id], constant(run, metric, measure), run) for run in runs if run.id in numbers]
    known = [(number, found, run) for number, found, run in pairs if found is not None]
    if not known or len(known) < len(pairs):
        return True
    errors = [0.0] * len(known)
    if metric == "accuracy":
        samples = [run.info["data"]["constant"]["samples"] for _, _, run in known]
        errors = [_ERRORS * (found * (1 - found) / n) ** 0.5 for (_, found, _), n in zip(known, samples, strict=True)]
    gains = [number - found for number, found, _ in known]
    gain = float(np.mean(gains)) * (1 if measure.larger_is_better(metric) else -1)
    return gain > float(np.mean(errors))


def context(
    runs: RunSet,
    groups: Mapping[tuple[Value, ...], Sequence[Run]],
    numbers: Mapping[str, Mapping[str, float]],
    measure: Measure,
) -> Iterator[str]:
    """Yields lines to read a comparison by: whether no run has learned anything, what constant predictions and first
    evaluations score, and how long clients train."""
    found = {
        metric: [one for run in runs.runs if (one := constant(run, metric, measure)) is not None]
        for metric in measure.evaluated
    }
    known = {metric: values for metric, values in found.items() if values}
    if not known:
        return
    firsts = readings(runs, [*known], [measure.subject], [measure.split]).drop_duplicates(["run", "metric"])
    for metric, values in known.items():
        if not any(learned(group, numbers[metric], metric, measure) for group in groups.values()):
            yield f"no run is clearly better than {_NAMES[metric]}, {metric} {_between(values)}: none has learned"
        first = _between(firsts[firsts["metric"] == metric]["value"])
        yield f"{metric} of {_NAMES[metric]}: {_between(values)}; of first evaluations: {first}"
    steps = runs.pandas("updates", ["run", "local_steps"], keys=[]).groupby("run", observed=True)["local_steps"].mean()
    if len(trained := steps.dropna()):
        yield f"local steps of a dispatch: {_between(trained)}"


def _between(values: Iterable[float]) -> str:
    low, high = (f"{end(list(values)):.4g}" for end in (min, max))
    return low if low == high else f"{low} to {high}"
