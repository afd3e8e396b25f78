"""Numbers that runs are compared by, against those worked out by hand."""

import math
from pathlib import Path
from typing import Any

import pytest
from compared_runs import FEDAVG, FEDBUFF, cells, compare, made
from conftest import Simulate
from peers_runs import peers
from reported_runs import evaluation, when
from reported_runs import made as reported

from results import load
from results.texts import in_bytes


@pytest.mark.parametrize(
    ("reduce", "accuracy"),
    [
        ("last", 0.5),
        ("best", 0.9),
        ("max_of_last_1", 0.5),
        ("max_of_last_2", 0.6),
        ("max_of_last_9", 0.9),
        ("min_of_last_2", 0.5),
        ("mean_of_last_3", 2 / 3),
    ],
)
def test_evaluations_become_one_number(tmp_path: Path, reduce: str, accuracy: float) -> None:
    made(tmp_path / "a", FEDAVG, [0.1, 0.9, 0.6, 0.5])
    (row,) = cells(tmp_path, "--reduce", reduce)
    assert float(row["mean"]) == pytest.approx(accuracy)
    assert (row["std"], row["runs"]) == ("", "1")


def test_the_best_loss_is_the_smallest_and_no_nan(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.1, 0.2, 0.3], losses=[0.5, 0.7, math.nan])
    frame = load(tmp_path).compare(metric=["accuracy", "loss"], reduce="best")
    assert frame["mean"].tolist() == [0.3, 0.5]
    assert math.isnan(load(tmp_path).compare(metric="loss")["mean"].item())


@pytest.mark.parametrize(
    ("over", "value"),
    [
        ("mean", 0.6),
        ("micro", 41 / 60),
        ("min", 0.3),
        ("max", 0.8),
        ("gap", 0.5),
        ("p10", 0.38),
        ("p50", 0.7),
        ("p90", 0.78),
    ],
)
def test_clients_are_taken_together_in_each_evaluation(tmp_path: Path, over: str, value: float) -> None:
    made(tmp_path / "a", FEDAVG, [0.0, 0.0], clients=[(0.0, 1.0, 0.5), (0.3, 0.7, 0.8)])
    (row,) = cells(tmp_path, "--subject", "client", "--over", over)
    assert float(row["mean"]) == pytest.approx(value)
    answer = compare(tmp_path, "--subject", "client", "--over", over)
    text = "mean weighted by samples" if over == "micro" else f"unweighted {over}"
    assert f"{text} over clients" in answer.stdout


def test_a_gap_is_best_when_it_is_smallest(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.0, 0.0], clients=[(0.0, 0.2), (0.3, 0.7)])
    (row,) = cells(tmp_path, "--subject", "client", "--over", "gap", "--reduce", "best")
    assert float(row["mean"]) == pytest.approx(0.2)


def test_totals_are_of_the_whole_run(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.1, 0.2])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.1, 0.2, 0.3], seconds={"total": 12.0})
    names = ["up_bytes", "down_bytes", "local_steps", "virtual_time", "seconds"]
    frame = load(tmp_path).compare(metric=names)
    assert frame["metric"].tolist() == names
    assert frame["mean"].tolist() == [500, 1000, 35, 5.5, 10]
    assert frame["std"].tolist() == pytest.approx([math.sqrt(2) * half for half in (100, 200, 7, 1, 2)])


def test_staleness_is_that_of_the_updates_used(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [evaluation(1, 0.5), evaluation(2, 0.5)]
    known = {"client": 0, "dispatched_at": 0.0, "version": 0, "samples": 1}
    told = (("used", 1.0), ("used", 4.0), ("discarded", 9.0), ("used", 7.0))
    updates = [
        {**when(place), **known, "dispatch": place, "status": status, "staleness": staleness}
        for place, (status, staleness) in enumerate(told)
    ]
    reported(tmp_path / "a", {"evaluations": rows, "updates": updates})
    assert load(tmp_path).compare(metric="staleness")["mean"].tolist() == [4.0]
    assert load(tmp_path).compare(metric="staleness", at=("rounds", 2))["mean"].tolist() == [2.5]


def test_a_target_takes_rounds_time_and_bytes(tmp_path: Path) -> None:
    """Until the first evaluation that is as good, after the second round or the fourth. Two runs never get there, and
    count with the six rounds that they had: the mean is then a lower bound."""
    made(tmp_path / "a", FEDAVG, [0.7, 0.8, 0.6])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.8, 0.2, 0.3])
    made(tmp_path / "c", FEDBUFF, [0.8, 0.9, 0.9])
    made(tmp_path / "d", {**FEDBUFF, "seed": 1}, [0.1, 0.2, 0.3])
    made(tmp_path / "e", {"algorithm": {"name": "scaffold"}}, [0.1, 0.2, 0.3])
    frame = load(tmp_path).compare("algorithm", target=[("accuracy", 0.8)])
    table = frame.pivot(index="algorithm.name", columns="metric", values="mean")
    assert table["rounds_to_accuracy_0.8"].tolist() == [3, 4, 6]
    assert table["virtual_time_to_accuracy_0.8"].tolist() == [3.5, (2.5 + 6.5) / 2, 6.5]
    assert table["bytes_to_accuracy_0.8"].tolist() == [900, 1200, 1800]
    rounds = frame[frame["metric"] == "rounds_to_accuracy_0.8"]
    assert rounds[["runs", "missing", "censored"]].to_numpy().tolist() == [[2, 0, 0], [1, 0, 1], [0, 0, 1]]
    lines = compare(tmp_path, "--by", "algorithm", "--target", "accuracy=0.8", "--format", "markdown").stdout
    assert "3.000 ± 1.414 |" in lines and "| > 4 (1 of 2) |" in lines and "| > 6 (0 of 1) |" in lines
    assert "| scaffold | 0.3000 (1) |" in lines and "in brackets: over how many runs" in lines


def test_a_loss_reaches_a_target_from_above(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.1, 0.1, 0.1], losses=[3.0, 0.9, 0.5])
    frame = load(tmp_path).compare(metric=(), target=[("loss", 1.0), ("loss", 0.1)])
    assert frame["metric"].tolist()[::3] == ["rounds_to_loss_1", "rounds_to_loss_0.1"]
    assert frame["mean"].tolist()[::3] == [4, 6]


def test_a_metric_may_be_missing_in_some_runs(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5], losses=[1.0])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.7])
    rows = cells(tmp_path, "--metric", "loss", "--metric", "accuracy")
    assert [(row["mean"], row["runs"], row["missing"]) for row in rows] == [("1.0", "1", "1"), ("0.6", "2", "0")]


def test_runs_without_any_of_the_metrics_are_left_out(tmp_path: Path) -> None:
    """The keys in which they alone differ then make no columns. A run that misses a target has its metric."""
    made(tmp_path / "a", FEDAVG, [0.5], losses=[1.0])
    for lr in (1, 2):
        made(tmp_path / f"b{lr}", {**FEDBUFF, "lr": lr}, [0.7])
    answer = compare(tmp_path, "--metric", "loss", "--format", "csv")
    assert answer.stdout.splitlines() == ["metric,mean,std,runs,missing,best,p", "loss,1.0,,1,0,False,"]
    assert answer.stderr.startswith("left out: 2 runs without loss of subject global on split test, such as ")
    assert len(load(tmp_path).compare(metric=(), target=[("accuracy", 0.6)])) == 3 * 3


def test_peers_are_compared_where_no_run_has_a_server(simulate: Simulate, tmp_path: Path) -> None:
    folder = simulate(peers(data__clients=3, run__rounds=1)).folder
    named, plain = compare(folder, "--subject", "peer"), compare(folder)
    assert plain.exit_code == 0 and plain.stdout == named.stdout
    assert "unweighted mean over peers" in plain.stdout
    assert "gap over peers" in compare(folder, "--over", "gap").stdout
    assert load(folder).compare()["mean"].equals(load(folder).compare(subject="peer")["mean"])
    with pytest.warns(UserWarning, match="left out: 1 run without accuracy of subject global"):
        assert load(folder, made(tmp_path / "a", FEDAVG, [0.5])).compare()["mean"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("5MB", 5e6), ("5 MiB", 5 * 2**20), ("1.5kB", 1500), ("2KiB", 2048), ("2KB", 2000), ("1e3", 1000), ("7B", 7)),
        *(("5", 5), ("-5MB", -5e6), ("1 TB", 1e12), *((wrong, None) for wrong in ("5mb", "5M", "5iB", ".", ""))),
    ],
)
def test_bytes_have_decimal_and_binary_units(text: str, number: float | None) -> None:
    if number is None:
        with pytest.raises(ValueError, match="must be a number of bytes, such as 5000000, 5MB or 5MiB, got"):
            in_bytes(text)
    else:
        assert in_bytes(text) == number
