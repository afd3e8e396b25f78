"""What a report begins with: which method is best, or that the runs cannot tell."""

from pathlib import Path
from typing import Any

import pytest
from reported_runs import evaluation, made

from results import load
from results.groups import Look, grouped
from results.report import report
from results.report.standings import standings
from results.report.verdict import Verdict, verdict

SECONDS = {"world": {"delay": {"name": "constant", "unit": "seconds"}}}


def runs(folder: Path, values: dict[str, list[float]], scenario: dict[str, Any] = SECONDS, **info: Any) -> None:
    """Runs with an evaluation of 0.1 at time 1, and one at time 2 that has these values by seed."""
    for algorithm, of_seeds in values.items():
        for seed, value in enumerate(of_seeds):
            rows = [evaluation(1, 0.1), evaluation(2, value)]
            keys = {"algorithm": {"name": algorithm}, "seed": seed, **scenario}
            made(folder / f"{len([*folder.glob('*')])}", {"evaluations": rows}, keys, **info)


def of(folder: Path) -> Verdict:
    found = standings(grouped(load(folder)))
    assert found
    return verdict(found)


def test_the_best_method_is_named_with_its_lead_the_interval_and_p(tmp_path: Path) -> None:
    """Differences of 0.19, 0.20, 0.21: mean 0.2, t = 34.6, half an interval of 4.303 * 0.01 / sqrt(3) = 0.0248."""
    runs(tmp_path, {"slow": [0.5, 0.6, 0.4], "fast": [0.69, 0.80, 0.61], "bad": [0.2, 0.21, 0.1]})
    found = of(tmp_path)
    assert found.sentences == (
        "fast beats slow by 0.2 [0.175, 0.225] in accuracy at virtual time 2 seconds, p = 0.0017, Holm-corrected over "
        "2 comparisons. It beats the 1 other, too.",
    )
    (table,) = found.tables
    assert [row.cells[0] for row in table.rows] == ["fast", "slow", "bad"]
    assert table.rows[1].cells[4:] == ("-0.2000 [-0.2248, -0.1752]", "0.0017 *", "3 of 3")


def test_runs_that_cannot_tell_say_so(tmp_path: Path) -> None:
    runs(tmp_path / "few", {"a": [0.5], "b": [0.6]}, {})
    assert (
        of(tmp_path / "few")
        .sentences[0]
        .startswith(
            "The runs cannot tell which is best: a test needs two seeds of each method, got 1. b has the best accuracy "
            "after 3 rounds, 0.6."
        )
    )
    runs(tmp_path / "alike", {"a": [0.5, 0.7], "b": [0.6, 0.61]})
    assert "The runs cannot tell b from a, which are best: they differ by" in of(tmp_path / "alike").sentences[0]


def test_equal_time_is_what_all_runs_that_are_over_have_reached_and_others_are_told(tmp_path: Path) -> None:
    """A run that diverged at time 1 moves nothing, and one that ended at time 1 does."""
    runs(tmp_path, {"a": [0.5, 0.6], "b": [0.7, 0.8]})
    lost = {"what": "the loss of client 3", "round": 0, "version": 0}
    keys = {"algorithm": {"name": "a"}, "seed": 2, **SECONDS}
    made(tmp_path / "lost", {"evaluations": [evaluation(1, 0.1)]}, keys, status="diverged", diverged=lost)
    found = of(tmp_path)
    assert "at virtual time 2 seconds" in found.sentences[0]
    assert found.sentences[-1] == "Of a, 1 of 3 runs left out: 1 diverged."
    assert found.tables[0].rows[1].cells[-1] == "2 of 3, 1 diverged"
    html = report(load(tmp_path)).html
    assert (
        "the loss of client 3 was not finite in round 0" in html and "What mostly helps:</b> a smaller local.lr" in html
    )
    made(tmp_path / "short", {"evaluations": [evaluation(1, 0.1)]}, {**keys, "seed": 3})
    assert "at virtual time 1 seconds" in of(tmp_path).sentences[0]


def test_methods_are_ranked_in_each_setting_and_keep_their_colours(tmp_path: Path) -> None:
    for alpha, drop in ((0.1, 0.2), (1.0, 0.0)):
        setting = {"data": {"partition": {"alpha": alpha}}}
        runs(tmp_path, {"a": [0.5 - drop, 0.6], "b": [0.7, 0.8]}, setting)
    groups = grouped(load(tmp_path))
    assert [group.look for group in groups.groups] == [Look(0, 0), Look(1, 0), Look(0, 1), Look(1, 1)]
    found = of(tmp_path)
    assert [table.title for table in found.tables] == ["alpha=0.1", "alpha=1"]
    assert found.sentences[0].startswith("With alpha=0.1: ")


@pytest.mark.parametrize("status", ["running", "diverged"])
def test_no_run_that_is_over_gives_no_verdict(tmp_path: Path, status: str) -> None:
    runs(tmp_path, {"a": [0.5]}, status=status)
    assert standings(grouped(load(tmp_path))) is None
