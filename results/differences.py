"""The mean difference of paired samples, with confidence intervals."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95  # confidence level of all intervals
RESAMPLES = 10_000  # resamples of the bootstrap


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
