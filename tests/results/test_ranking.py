"""Which method is best, and which are worse by more than chance."""

import math

import pytest
from scipy import stats

from results.ranking import holm, rank

A, B, C = ({0: 0.80, 1: 0.86, 2: 0.83, 3: 0.90}, {0: 0.78, 1: 0.83, 2: 0.82, 3: 0.84}, {7: 0.5, 8: 0.6, 9: 0.4})


def test_holms_correction_by_hand() -> None:
    """0.01 * 3, 0.02 * 2, and 0.03 * 1, which must not be less than the one before; NaN does not count."""
    assert holm([0.03, 0.01, math.nan, 0.02]) == pytest.approx([0.04, 0.03, math.nan, 0.04], nan_ok=True)
    assert holm([0.7, 0.6]) == [1.0, 1.0]


def test_the_best_comes_first_and_others_are_compared_with_it() -> None:
    """By seed where there are pairs, else by Welch's test; p-values are corrected over both comparisons."""
    best, paired, apart = rank([B, A, C], larger=True)
    assert [one.case for one in (best, paired, apart)] == [1, 0, 2]
    assert (best.test, paired.test, apart.test) == ("", "paired", "Welch")
    by_pairs, by_welch = (
        stats.ttest_rel([*B.values()], [*A.values()]),
        stats.ttest_ind([*C.values()], [*A.values()], equal_var=False),
    )
    assert (paired.difference, paired.difference_low) == pytest.approx((-0.03, by_pairs.confidence_interval().low))
    assert sorted((by_pairs.pvalue, by_welch.pvalue))[0] * 2 == pytest.approx(min(paired.p, apart.p))
    assert math.isnan(best.p) and not best.worse and apart.worse
    assert [one.case for one in rank([B, A, C], larger=False)] == [2, 0, 1]


def test_too_few_runs_give_an_order_and_no_test() -> None:
    best, other, none = rank([{0: 0.5}, {0: 0.75}, {}], larger=True)
    assert (best.case, other.case, none.case) == (1, 0, 2)
    assert (other.test, other.difference, other.worse) == ("", -0.25, False)
    assert math.isnan(other.p) and math.isnan(best.low) and math.isnan(none.mean)
