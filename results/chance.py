"""What predicting the same for every sample would score, with which runs are compared: did anything learn?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow.compute as pc

from results.keys import Value
from results.measure import Measure
from results.reader import Run
from results.readings import readings
from results.run_set import RunSet

_NAMES = {"accuracy": "the majority class", "loss": "the best constant prediction"}
_ERRORS = 3  # standard errors of the test samples by which an accuracy must be better than the majority class


def constant(run: Run, metric: str, measure: Measure) -> tuple[float, int] | None:
    """Returns a metric of the best constant prediction on a run's test samples, and how many these are: the majority
    class, or the mean target; of clients' own models, the mean accuracy of each one's own majority class. None where
    the run does not say, or models were evaluated on other samples."""
    data = run.info.get("data") or {}
    found = data.get("constant") or {}
    if (measure.subject, measure.split) == ("global", "test"):
        return (float(found[metric]), found.get("samples", 0)) if metric in found else None
    labels = data.get("labels") or {}
    counted = labels.get("task") == "classes" and not labels.get("places")  # the table has a label of each sample
    if (measure.subject, measure.split, metric, counted) != ("client", "test", "accuracy", True):
        return None
    evaluated = pc.unique(run.table("evaluations", ["member"], pc.field("subject") == "client")["member"])
    of_evaluated = (pc.field("split") == "test") & pc.field("client").isin(evaluated)  # and not of unseen clients
    rows = run.table("partition", ["client", "samples"], of_evaluated)
    counts = rows.group_by("client").aggregate([("samples", "max"), ("samples", "sum")])
    most, samples = (counts[f"samples_{name}"].to_numpy() for name in ("max", "sum"))
    if not len(samples) or measure.over not in ("mean", "micro"):
        return None
    share = np.average(most / samples, weights=samples if measure.over == "micro" else None)
    return float(share), int(samples.sum())


def learned(runs: Sequence[Run], numbers: Mapping[str, float], metric: str, measure: Measure) -> bool:
    """Whether the mean of runs is better than constant predictions; an accuracy by more than three standard errors, as
    small as test sets are. True where that is not known."""
    pairs = [(numbers[run.id], constant(run, metric, measure)) for run in runs if run.id in numbers]
    known = [(number, found) for number, found in pairs if found is not None]
    if not known or len(known) < len(pairs):
        return True
    errors = [0.0] * len(known)
    if metric == "accuracy":
        errors = [_ERRORS * (found * (1 - found) / samples) ** 0.5 for _, (found, samples) in known]
    gains = [number - found for number, (found, _) in known]
    gain = float(np.mean(gains)) * (1 if measure.larger_is_better(metric) else -1)
    return gain > float(np.mean(errors))


def context(
    runs: RunSet,
    groups: Mapping[tuple[Value, ...], Sequence[Run]],
    numbers: Mapping[str, Mapping[str, float]],
    measure: Measure,
) -> Iterator[str]:
    """Yields lines to read a comparison by: whether no run has learned anything, what constant predictions and first
    evaluations score, how long clients train, and that clients' own models were evaluated, too."""
    if measure.subject == "global" and any(run.keys.get("run.evaluate_clients") for run in runs.runs):
        yield "clients' own models were evaluated, too, and may rank otherwise: --subject client"
    found = {
        metric: [one[0] for run in runs.runs if (one := constant(run, metric, measure)) is not None]
        for metric in measure.evaluated
    }
    known = {metric: values for metric, values in found.items() if values}
    if not known:
        return
    firsts = readings(runs, [*known], [measure.subject], [measure.split]).drop_duplicates(["run", "metric"])
    for metric, values in known.items():
        name = "each client's majority class" if measure.subject == "client" else _NAMES[metric]
        if not any(learned(group, numbers[metric], metric, measure) for group in groups.values()):
            yield f"no run is clearly better than {name}, {metric} {_between(values)}: none has learned"
        first = _between(firsts[firsts["metric"] == metric]["value"])
        yield f"{metric} of {name}: {_between(values)}; of first evaluations: {first}"
    steps = runs.pandas("updates", ["run", "local_steps"], keys=[]).groupby("run", observed=True)["local_steps"].mean()
    if len(trained := steps.dropna()):
        yield f"local steps of a dispatch: {_between(trained)}"


def _between(values: Iterable[float]) -> str:
    low, high = (f"{end(list(values)):.4g}" for end in (min, max))
    return low if low == high else f"{low} to {high}"
