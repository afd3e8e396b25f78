"""Tests of means over seeds: how much two cases differ, and which are worse than the best by more than chance.

Runs are paired by seed, because all draws of a run are keyed by it: see `results.paired`. Where two cases share fewer
than two seeds, Welch's t-test is taken, which knows of no pairs.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from results.chance import learned
from results.groups import is_absent
from results.keys import Value, varying
from results.measure import TOTALS, Measure
from results.reader import Run
from results.run_set import RunSet
from results.score import Censored, Numbers

LEVEL = 0.95  # confidence level of all intervals
SIGNIFICANT = 1 - LEVEL  # a p-value below this is called significant

_PLACES = ("root", "download")  # keys of `data` that change no sample
_DIVISION = ("clients", "partition", "validation", "unseen", "local_test", "label_noise", "noisy_labels", "skew")
"""Keys of `data` on which the samples that a global model is evaluated on do not depend."""

BySeed: TypeAlias = Mapping[Hashable, float]  # a case's numbers, by seed
Marks: TypeAlias = dict[tuple[tuple[Value, ...], str], tuple[bool, float]]
"""By values of the keys and metric: whether it is the best, and p, NaN for the best and where nothing was tested."""


class Difference(NamedTuple):
    """The difference of two samples that are paired, and its interval. All but the mean need two pairs."""

    pairs: int
    difference: float
    """Mean of the differences."""
    std: float
    """Sample standard deviation of the differences."""
    low: float
    high: float
    """Interval by Student's t distribution, which takes the differences as normally distributed."""
    p: float
    """Probability of a mean difference so far from 0 if there were none, by the paired t-test, two-sided."""


@np.errstate(invalid="ignore")  # a loss may be infinite
def difference(case: ArrayLike, baseline: ArrayLike) -> Difference:
    """Returns the difference of paired samples, (pairs,) each. A field is NaN where there are too few pairs."""
    differences = np.asarray(case, float) - np.asarray(baseline, float)
    count, mean = len(differences), float(differences.mean()) if len(differences) else math.nan
    if count < 2:
        return Difference(count, mean, *[math.nan] * 4)
    from scipy import stats

    std = float(differences.std(ddof=1))
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * std / math.sqrt(count)
    p = 2 * float(stats.t.sf(abs(mean) / std * math.sqrt(count), count - 1)) if std else math.nan
    return Difference(count, mean, std, mean - half, mean + half, p)


def holm(values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for how many they are (Holm, A simple sequentially rejective multiple test procedure,
    1979). NaN stays NaN and does not count."""
    found, largest = [math.nan] * len(values), 0.0
    known = sorted((value, place) for place, value in enumerate(values) if not math.isnan(value))
    for above, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - above)))
        found[place] = largest
    return found


def against_best(cases: Sequence[BySeed], larger: bool) -> list[tuple[bool, float]]:
    """Returns of each case whether its mean is the best, and the p-value of the test against the first best one, which
    is corrected over all comparisons (Holm 1979); NaN for the best one, and where either has too few runs.

    larger: whether larger numbers are better.
    """
    means = [float(np.mean([*case.values()])) for case in cases]
    order = sorted(range(len(cases)), key=lambda place: -means[place] if larger else means[place])
    best = order[0]
    values = [math.nan if place == best else _p_value(case, cases[best]) for place, case in enumerate(cases)]
    return [(mean == means[best], p) for mean, p in zip(means, holm(values), strict=True)]


def _p_value(case: BySeed, best: BySeed) -> float:
    seeds = [seed for seed in best if seed in case]
    if len(seeds) > 1:
        return difference([case[seed] for seed in seeds], [best[seed] for seed in seeds]).p
    a, b = (np.array([*of.values()], float) for of in (case, best))
    if min(len(a), len(b)) < 2 or not np.isfinite([*a, *b]).all() or not a.var() + b.var():
        return math.nan
    from scipy import stats

    return float(stats.ttest_ind(a, b, equal_var=False).pvalue)


def marks(
    groups: Mapping[tuple[Value, ...], Sequence[Run]],
    numbers: Numbers,
    rows: int,
    measure: Measure,
) -> Marks:
    """Returns the marks of all numbers. A mean for which runs are missing or have not reached a target, or that is no
    better than a constant prediction, has none. Runs that are evaluated on different data, or by another loss, are not
    ranked against each other.

    rows: how many of the values are those of keys that make rows; the others make columns.
    """
    found: Marks = {}
    for metric, of_runs in numbers.items():
        # Other metrics are the costs of reaching a target: the less, the better.
        larger = measure.larger_is_better(metric) if metric in measure.metrics else False
        if larger is None:
            continue
        columns: dict[Hashable, list[tuple[Value, ...]]] = {}
        for values, group in groups.items():
            if _whole([of_runs.get(run.id, math.nan) for run in group]):
                alike = tuple(_conditions(group[0], metric, measure).items())
                columns.setdefault((values[rows:], alike), []).append(values)
        for of_column in columns.values():
            if len(of_column) < 2:
                continue
            marked = against_best([_by_seed(groups[values], of_runs) for values in of_column], larger)
            for values, mark in zip(of_column, marked, strict=True):
                if learned(groups[values], of_runs, metric, measure):
                    found[values, metric] = mark
    return found


def _conditions(run: Run, metric: str, measure: Measure) -> dict[str, Value]:
    """Returns what must be the same in runs whose numbers are ranked, by key of the scenario.

    Keys without a value are left out, because runs of other versions may not have them.
    """
    apart = _PLACES + (_DIVISION if measure.subject == "global" else ())
    timed = "virtual_time" in metric or (measure.at is not None and measure.at[0] == "virtual_time")
    others = (*(["run.loss"] if metric == "loss" else []), *(["world.delay.unit"] if timed else []))
    return {
        key: value
        for key, value in run.keys.items()
        if (key.startswith(others) or (key.startswith("data.") and key.split(".")[1] not in apart))
        and not is_absent(value)
    }


def unlike(runs: RunSet, metrics: Iterable[str], measure: Measure) -> Iterator[str]:
    """Yields a line that names the keys in which runs are so different that they are not ranked against each other."""
    ranked = [metric for metric in metrics if metric not in TOTALS]
    every = [{k: v for metric in ranked for k, v in _conditions(run, metric, measure).items()} for run in runs.runs]
    if keys := varying(every):
        named = "data.name" if "data.name" in keys else ", ".join(keys)
        yield f"runs that differ in {named} are not ranked against each other: their numbers are not comparable"


def _whole(numbers: Sequence[float]) -> bool:
    return not any(isinstance(number, Censored) or math.isnan(number) for number in numbers)


def _by_seed(group: Sequence[Run], numbers: Mapping[str, float]) -> dict[Hashable, float]:
    return {run.keys.get("seed"): numbers[run.id] for run in group if run.id in numbers}
