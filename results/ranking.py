"""Tests of means over seeds: how much two cases differ, and which are worse than the best by more than chance.

Runs are paired by seed, because all draws of a run are keyed by it: see `results.paired`. Where two cases share fewer
than two seeds, Welch's t-test is taken, which knows of no pairs.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from results.keys import Value
from results.measure import Measure
from results.reader import Run
from results.score import Censored, Numbers

LEVEL = 0.95  # confidence level of all intervals
RESAMPLES = 10_000  # resamples of the bootstrap
SIGNIFICANT = 1 - LEVEL  # a p-value below this is called significant

BySeed: TypeAlias = Mapping[Hashable, float]  # a case's numbers, by seed
Marks: TypeAlias = dict[tuple[tuple[Value, ...], str], tuple[bool, float]]
"""By values of the keys and metric: whether it is the best, and p, NaN for the best and where nothing was tested."""


# --- two cases --------------------------------------------------------------------------------------------------------


class Difference(NamedTuple):
    """The difference of two samples that are paired, and intervals of its mean. All but the mean need two pairs."""

    pairs: int
    difference: float
    """Mean of the differences."""
    std: float
    """Sample standard deviation of the differences."""
    t_low: float
    t_high: float
    """Interval by Student's t distribution, which takes the differences as normally distributed."""
    p: float
    """Probability of a mean difference so far from 0 if there were none, by the paired t-test, two-sided."""
    bootstrap_low: float
    bootstrap_high: float
    """Percentile interval of the bootstrap (Efron 1979), over RESAMPLES samples of pairs, always the same ones."""
    welch_low: float
    welch_high: float
    """Interval by Welch's t-test, which does not know of the pairs."""
    narrower: float
    """Share by which the interval by t is narrower than Welch's; negative if it is wider."""


@np.errstate(invalid="ignore")  # a loss may be infinite
def difference(case: ArrayLike, baseline: ArrayLike) -> Difference:
    """Returns the difference of paired samples, (pairs,) each. A field is NaN where there are too few pairs."""
    a, b = np.asarray(case, float), np.asarray(baseline, float)
    differences, count = a - b, len(a)
    if count < 2:
        return Difference(count, float(differences.mean()) if count else math.nan, *[math.nan] * 9)
    from scipy import stats

    mean, std, half = float(differences.mean()), float(differences.std(ddof=1)), half_width(differences)
    p = 2 * float(stats.t.sf(abs(mean) / std * math.sqrt(count), count - 1)) if std else math.nan
    variances = np.array([a.var(ddof=1), b.var(ddof=1)]) / count
    welch = math.nan
    if variances.sum():
        freedom = variances.sum() ** 2 / (variances**2).sum() * (count - 1)
        welch = float(stats.t.ppf((1 + LEVEL) / 2, freedom) * math.sqrt(variances.sum()))
    low, high = _bootstrap(differences)
    intervals = (mean - half, mean + half, p, low, high, mean - welch, mean + welch)
    return Difference(count, mean, std, *intervals, 1 - half / welch)


@np.errstate(invalid="ignore")
def half_width(numbers: NDArray[np.float64]) -> float:
    """Returns half the width of the interval of a mean, by Student's t distribution; NaN for fewer than two numbers."""
    count = len(numbers)
    if count < 2:
        return math.nan
    from scipy import stats

    return float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * float(numbers.std(ddof=1)) / math.sqrt(count)


def _bootstrap(differences: NDArray[np.float64]) -> tuple[float, float]:
    drawn = np.random.default_rng(0).integers(len(differences), size=(RESAMPLES, len(differences)))
    low, high = np.quantile(differences[drawn].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


# --- many cases -------------------------------------------------------------------------------------------------------


class Ranked(NamedTuple):
    """A case, compared with the best one. Numbers are NaN where there are too few runs."""

    case: int
    """Its place among the cases that were ranked."""
    runs: int
    mean: float
    low: float
    high: float
    """Interval of the mean, by Student's t distribution."""
    test: Literal["", "paired", "Welch"]
    """How it was compared with the best case; empty for the best one, and where either has too few runs."""
    difference: float
    """Mean of its numbers minus those of the best case; over pairs, if it was tested so."""
    difference_low: float
    difference_high: float
    p: float
    """The p-value of the t-test, two-sided, corrected over all comparisons with the best case (Holm 1979)."""

    @property
    def worse(self) -> bool:
        """Whether it is worse than the best case, and not by chance."""
        return self.p < SIGNIFICANT


def rank(cases: Sequence[BySeed], larger: bool) -> list[Ranked]:
    """Returns the cases from the best mean to the worst; those without a mean that is a number come last.

    larger: whether larger numbers are better.
    """
    means = [float(np.mean([*case.values()])) if case else math.nan for case in cases]
    order = sorted(range(len(cases)), key=lambda place: _sorted_by(means[place], larger))
    best = cases[order[0]]
    tests = [_Test(""), *(_compared(cases[place], best) for place in order[1:])]
    corrected = holm([test.p for test in tests])
    halves = [half_width(np.array([*cases[place].values()], float)) for place in order]
    return [
        Ranked(place, len(cases[place]), means[place], means[place] - half, means[place] + half, *test[:-1], p)
        for place, half, test, p in zip(order, halves, tests, corrected, strict=True)
    ]


def holm(values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for how many they are (Holm, A simple sequentially rejective multiple test procedure,
    1979). NaN stays NaN and does not count."""
    found, largest = [math.nan] * len(values), 0.0
    known = sorted((value, place) for place, value in enumerate(values) if not math.isnan(value))
    for above, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - above)))
        found[place] = largest
    return found


def _sorted_by(mean: float, larger: bool) -> tuple[bool, float]:
    return math.isnan(mean), -mean if larger else mean


class _Test(NamedTuple):
    name: Literal["", "paired", "Welch"]
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan


def _compared(case: BySeed, best: BySeed) -> _Test:
    seeds = [seed for seed in best if seed in case]
    if len(seeds) > 1:
        found = difference([case[seed] for seed in seeds], [best[seed] for seed in seeds])
        return _Test("paired", found.difference, found.t_low, found.t_high, found.p)
    a, b = (np.array([*of.values()], float) for of in (case, best))
    apart = float(a.mean() - b.mean()) if len(a) and len(b) else math.nan
    if min(len(a), len(b)) < 2 or not np.isfinite([*a, *b]).all() or not a.var() + b.var():
        return _Test("", apart)
    from scipy import stats

    test = stats.ttest_ind(a, b, equal_var=False)
    low, high = test.confidence_interval(LEVEL)
    return _Test("Welch", apart, float(low), float(high), float(test.pvalue))


def marks(
    groups: Mapping[tuple[Value, ...], Sequence[Run]],
    numbers: Numbers,
    rows: int,
    measure: Measure,
) -> Marks:
    """Returns the marks of all numbers. A mean for which runs are missing, or have not reached a target, has none.

    rows: how many of the values are those of keys that make rows; the others make columns.
    """
    found: Marks = {}
    for metric, of_runs in numbers.items():
        # Other metrics are the costs of reaching a target: the less, the better.
        larger = measure.larger_is_better(metric) if metric in measure.metrics else False
        if larger is None:
            continue
        columns: dict[tuple[Value, ...], list[tuple[Value, ...]]] = {}
        for values, group in groups.items():
            if _whole([of_runs.get(run.id, math.nan) for run in group]):
                columns.setdefault(values[rows:], []).append(values)
        for of_column in columns.values():
            if len(of_column) < 2:
                continue
            ranked = rank([_by_seed(groups[values], of_runs) for values in of_column], larger)
            for one in ranked:
                found[of_column[one.case], metric] = one.mean == ranked[0].mean, one.p
    return found


def _whole(numbers: Sequence[float]) -> bool:
    return not any(isinstance(number, Censored) or math.isnan(number) for number in numbers)


def _by_seed(group: Sequence[Run], numbers: Mapping[str, float]) -> dict[Hashable, float]:
    return {run.keys.get("seed"): numbers[run.id] for run in group if run.id in numbers}
