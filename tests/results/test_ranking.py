"""Which method is best, and which are worse by more than chance."""

import math
from pathlib import Path
from typing import Any

import pytest
from compared_runs import compare, made
from scipy import stats

from results import load
from results.ranking import against_best, holm

A, B, C = ({0: 0.80, 1: 0.86, 2: 0.83, 3: 0.90}, {0: 0.78, 1: 0.83, 2: 0.82, 3: 0.84}, {7: 0.5, 8: 0.6, 9: 0.4})


def test_holms_correction_by_hand() -> None:
    """0.01 * 3, 0.02 * 2, and 0.03 * 1, which must not be less than the one before; NaN does not count."""
    assert holm([0.03, 0.01, math.nan, 0.02]) == pytest.approx([0.04, 0.03, math.nan, 0.04], nan_ok=True)
    assert holm([0.7, 0.6]) == [1.0, 1.0]


def test_others_are_tested_against_the_best() -> None:
    """By seed where there are pairs, else by Welch's test; p-values are corrected over both comparisons."""
    (paired, of_b), (best, of_a), (apart, of_c) = against_best([B, A, C], larger=True)
    assert (best, paired, apart) == (True, False, False) and math.isnan(of_a)
    by_pairs = stats.ttest_rel([*B.values()], [*A.values()]).pvalue
    by_welch = stats.ttest_ind([*C.values()], [*A.values()], equal_var=False).pvalue
    assert [of_b, of_c] == pytest.approx(holm([by_pairs, by_welch]))
    assert [one for one, _ in against_best([B, A, C], larger=False)] == [False, False, True]


def test_too_few_runs_give_an_order_and_no_test() -> None:
    (_, other), (best, _) = against_best([{0: 0.5}, {0: 0.75}], larger=True)
    assert best and math.isnan(other)


def test_the_main_table_marks_what_is_not_significantly_worse(tmp_path: Path) -> None:
    """By the best, which has a star: one that differs by chance, and one that is always 0.1 or so worse."""
    ends = {"a": (0.8, 0.9, 0.7), "b": (0.81, 0.87, 0.71), "c": (0.7, 0.79, 0.61)}
    for name, of_seeds in ends.items():
        for seed, end in enumerate(of_seeds):
            made(tmp_path / f"{name}{seed}", {"algorithm": {"name": name}, "seed": seed}, [end])
    lines = compare(tmp_path, "--format", "markdown").stdout.splitlines()
    assert lines[2:5] == [r"| a | 0.8000 ± 0.1000\* |", "| b | 0.7967 ± 0.0808† |", "| c | 0.7000 ± 0.0900 |"]
    frame = load(tmp_path).compare()
    assert frame["best"].tolist() == [True, False, False]
    of_b, of_c = (stats.ttest_rel(ends[name], ends["a"]).pvalue for name in "bc")
    assert frame["p"].tolist() == pytest.approx([math.nan, of_b, 2 * of_c], nan_ok=True)


def test_runs_on_different_data_are_not_ranked_against_each_other(tmp_path: Path) -> None:
    """How data are divided changes nothing for a global model; clients' own are evaluated on what they hold."""
    for place, (data, clients) in enumerate([("digits", 5), ("digits", 9), ("cifar10", 5)]):
        for name, end in (("a", 0.5 + place / 10), ("b", 0.4)):
            scenario = {"algorithm": {"name": name}, "data": {"name": data, "clients": clients}}
            made(tmp_path / f"{name}{place}", scenario, [end], losses=[end], clients=[[end, end]])
    runs = load(tmp_path)

    def best(**how: Any) -> list[tuple[Any, ...]]:
        frame = runs.compare(["data", "data.clients", "algorithm"], **how)
        return [tuple(row) for row in frame[frame["best"]].iloc[:, :3].to_numpy()]

    assert best() == [("cifar10", 5, "a"), ("digits", 9, "a")]
    assert best(subject="client") == [("cifar10", 5, "a"), ("digits", 5, "a"), ("digits", 9, "a")]
    told = " ".join(compare(tmp_path).stdout.split())
    assert "runs that differ in data.name are not ranked against each other: their numbers are not comparable" in told
    assert "not ranked" not in compare(tmp_path / "a0", tmp_path / "a1").stdout
    made(tmp_path / "old", {"algorithm": {"name": "c"}, "data": {"name": "digits", "clients": 5, "columns": []}}, [0.1])
    assert "not ranked" not in compare(tmp_path / "a0", tmp_path / "old").stdout, "a key without a value"


@pytest.mark.parametrize(
    ("key", "metric", "how"),
    [("run.loss", "loss", {}), ("world.delay.unit", "accuracy", {"at": ("virtual_time", 9.0)})],
)
@pytest.mark.filterwarnings("ignore:.*ended before")
def test_numbers_that_mean_something_else_are_not_ranked(
    key: str, metric: str, how: dict[str, Any], tmp_path: Path
) -> None:
    """A loss that is another function, and a budget of time in another unit."""
    block, _, last = key.rpartition(".")
    for name, value in (("a", "one"), ("b", "other")):
        scenario: dict[str, Any] = {"world": {"delay": {"name": "none"}}, "run": {"rounds": 1}}
        inner = scenario["run"] if block == "run" else scenario["world"]["delay"]
        inner[last] = value
        made(tmp_path / name, scenario, [0.5], losses=[0.5])
    assert not load(tmp_path).compare(metric=metric, **how)["best"].any()
    other = {"loss": "accuracy", "accuracy": "loss"}[metric]
    assert load(tmp_path).compare(metric=other)["best"].any()
    assert not [
        line for line in load(tmp_path).compared(metric=[other, "virtual_time"]).context if "not ranked" in line
    ]
