"""Ranks cases by a number of each of their runs, and tests which are worse than the best by more than chance.

Runs are paired by seed, because all draws of a run are keyed by it: see `results.paired`. Where two cases share fewer
than two seeds, Welch's t-test is taken, which knows of no pairs.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from results.differences import LEVEL, difference, half_width
from results.keys import Value
from results.measure import Measure
from results.reader import Run
from results.score import Censored, Numbers

Of: TypeAlias = Mapping[Hashable, float]  # a case's numbers, by seed
Marks: TypeAlias = dict[tuple[tuple[Value, ...], str], tuple[bool, float]]
"""By values of the keys and metric: whether it is the best, and p, NaN for the best and where nothing was tested."""

SIGNIFICANT = 1 - LEVEL  # a p-value below this is called significant


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


def rank(cases: Sequence[Of], larger: bool) -> list[Ranked]:
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


def _compared(case: Of, best: Of) -> _Test:
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
