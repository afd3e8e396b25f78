"""Runs side by side: which of them make one number, and what cannot be compared."""

import csv
import io
import math
import re
from pathlib import Path

import pytest
from compared_runs import FEDAVG, cells, compare, made, refused, several

from results import NotComparable, load


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return several(tmp_path / "runs")


def test_a_group_has_the_mean_and_the_sample_standard_deviation_of_its_runs(runs: Path) -> None:
    """By default groups are told by all keys that differ but seed; those that go with a part's name say nothing new."""
    rows = cells(runs)
    heads = "algorithm.name world.delay.sigma metric mean std runs missing best p"
    assert list(rows[0]) == heads.split()
    assert [(row["algorithm.name"], float(row["world.delay.sigma"])) for row in rows] == [
        ("fedavg", 5),
        ("fedavg", 20),
        ("fedbuff", 5),
    ]
    assert [float(row["mean"]) for row in rows] == pytest.approx([0.85, 0.55, 0.75])
    assert [float(row["std"]) for row in rows] == pytest.approx([math.sqrt(0.005)] * 3)  # 2 * 0.05² / (2 - 1)
    assert {(row["metric"], row["runs"], row["missing"]) for row in rows} == {("accuracy", "2", "0")}


def test_epsilon_is_a_column_where_runs_have_one(tmp_path: Path) -> None:
    for name, epsilon in (("fedavg", None), ("fedbuff", 2.5)):
        scenario = {**FEDAVG, "algorithm": {"name": name}, "name": name, "privacy": epsilon and {"delta": 1e-5}}
        made(tmp_path / name, scenario, [0.5], privacy=epsilon and {"epsilon": epsilon})
    assert [row["metric"] for row in cells(tmp_path / "fedavg")] == ["accuracy"]
    rows = {(row["algorithm.name"], row["metric"]): row["mean"] for row in cells(tmp_path)}
    assert rows["fedbuff", "epsilon"] == "2.5" and rows["fedavg", "epsilon"] == "" and len(rows) == 4
    assert {row["metric"] for row in cells(tmp_path, "--metric", "accuracy")} == {"accuracy"}


# --- groups -----------------------------------------------------------------------------------------------------------


def test_runs_of_a_group_differ_in_seed_only(runs: Path) -> None:
    assert refused(runs, "--by", "algorithm") == (
        "runs that cannot be compared: those with algorithm.name=fedavg must differ in seed only, got several values "
        "of world.delay.sigma; add --by KEY, for example --by world.delay.sigma\n"
    )
    assert len(cells(runs, "--by", "algorithm", "--columns", "world.delay.sigma")) == 3
    assert len(cells(runs, "--by", "algorithm", "--by", "seed", "--columns", "world.delay.sigma")) == 6


def test_what_numbers_do_not_depend_on_makes_no_groups(tmp_path: Path) -> None:
    for seed, (name, actors) in enumerate([("x", 1), ("y", 2)]):
        made(tmp_path / name, {**FEDAVG, "seed": seed, "name": name, "resources": {"client_actors": actors}}, [0.5])
    often = {"checkpoint": {"every_s": 60}, "save_clients": True}
    made(tmp_path / "w", {**FEDAVG, "seed": 3, "name": "x", "resources": {"client_actors": 1}, "run": often}, [0.5])
    assert [row["runs"] for row in cells(tmp_path)] == ["3"]
    made(tmp_path / "z", {**FEDAVG, "seed": 2, "name": "z", "resources": {"client_actors": 1, "chunk": 9}}, [0.5])
    assert [row["resources.chunk"] for row in cells(tmp_path)] == ["", "9.0"]
    assert [row["name"] for row in cells(tmp_path, "--by", "name")] == ["x", "y", "z"]


def test_a_key_that_is_null_and_one_that_is_missing_are_one_group(tmp_path: Path) -> None:
    """Groups are in order: without the value first, then by number."""
    for seed, extra in enumerate([{"clip": 10}, {"clip": None}, {"clip": 9}, {}]):
        made(tmp_path / f"r{seed}", {**FEDAVG, **extra, "seed": seed}, [0.5])
    assert [(row["clip"], row["runs"]) for row in cells(tmp_path)] == [("", "2"), ("9.0", "1"), ("10.0", "1")]


def test_runs_of_older_versions_are_grouped_with_newer_ones(tmp_path: Path) -> None:
    """A key that a version did not know is not another value, unless the other run has another one than its default."""
    for seed, join in enumerate([{"world": {"leave": "wait"}}, {"world": {"leave": "wait", "join": "first"}}]):
        made(tmp_path / f"r{seed}", {**FEDAVG, **join, "seed": seed, "run": {"observe": []}}, [0.5])
    assert [row["runs"] for row in cells(tmp_path)] == ["2"]
    made(tmp_path / "r2", {**FEDAVG, "world": {"leave": "wait", "join": "newest"}, "seed": 2}, [0.5])
    assert [(row["world.join"], row["runs"]) for row in cells(tmp_path)] == [("first", "2"), ("newest", "1")]


def test_a_block_that_some_runs_have_tells_groups_apart(tmp_path: Path) -> None:
    for place, until in enumerate([None, {"bytes": 100}, {"bytes": 200}]):
        made(tmp_path / f"r{place}", {**FEDAVG, "run": {"until": until}}, [0.5])
    assert [row["run.until.bytes"] for row in cells(tmp_path)] == ["", "100.0", "200.0"]


def test_of_the_same_seed_twice_the_newest_finished_counts(tmp_path: Path) -> None:
    made(tmp_path / "b", FEDAVG, [0.2], finished_at="2026-01-02T00:00:00+00:00")
    made(tmp_path / "a", FEDAVG, [0.1], finished_at="2026-01-01T00:00:00+00:00")
    made(tmp_path / "c", FEDAVG, [0.3], status="failed", finished_at="2026-01-03T00:00:00+00:00")
    answer = compare(tmp_path, "--format", "csv", "--unfinished")
    assert [row["mean"] for row in csv.DictReader(io.StringIO(answer.stdout))] == ["0.2"]
    for left_out in ("a", "c"):
        note = f"{tmp_path / left_out}: left out, because {tmp_path / 'b'} has the same scenario and seed"
        assert note in answer.stderr.splitlines()


def test_runs_that_are_not_finished_are_named_and_left_out(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.7], status="failed")
    made(tmp_path / "c", {**FEDAVG, "seed": 2}, [0.9], status="running")
    answer = compare(tmp_path, "--format", "csv")
    assert ",0.5,,1,0,False,\n" in answer.stdout
    failed, running = answer.stderr.splitlines()
    assert failed == f"{tmp_path / 'b'}: failed; left out"
    assert re.fullmatch(rf"{tmp_path}/c: running, last written 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC; left out", running)
    answer = compare(tmp_path, "--format", "csv", "--unfinished")
    assert answer.stdout.endswith(",3,0,False,\n")
    assert f"{tmp_path / 'b'}: failed; counts" in answer.stderr.splitlines()


def test_if_no_run_is_finished_there_is_nothing_to_compare(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5], status="interrupted")
    assert refused(tmp_path) == (
        f"{tmp_path / 'a'}: interrupted; left out\nruns: must have ended to be compared, got none; add --unfinished\n"
    )


# --- what is asked for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--by sigma", "sigma: must be a key of the runs' scenarios, got none of that name; nearest are "),
        ("--by algorithm --columns algorithm.name", "columns: must be other keys than those of --by, got algorithm.n"),
        ("--metric acuracy", "metric: must be evaluated in a run, for subject global on split test, or be a total, "),
        ("--split train", "got accuracy; evaluated are global test accuracy; "),
        ("--subject clients", "subject: must be one of global, slice, group, client, unseen, peer, got 'clients'"),
        ("--over worst --subject client", "over: must be one of mean, micro, min, max, gap, p10, p50, p90, got"),
        ("--over gap", "over: must be mean for the global model, of which there is one, got 'gap'"),
        ("--reduce max_of_last_0", "reduce: must be last, best, at_best_validation, max_of_last_K, min_of_last_K or"),
        ("--reduce best --metric auc", "reduce: must not be best for 'auc', because it is not known whether larger is"),
        ("--target accuracy", "target: must be metric=number, such as accuracy=0.8, got 'accuracy'"),
        ("--target accuracy=nan", "target: must be a number for accuracy or loss, got accuracy=nan"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_reason(runs: Path, options: str, message: str) -> None:
    assert message in refused(runs, *options.split())


# --- Python -----------------------------------------------------------------------------------------------------------


def test_python_is_given_a_frame_and_warned_of_runs_that_do_not_count(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.7], status="failed")
    with pytest.warns(UserWarning, match=r"b: failed; left out"):
        frame = load(tmp_path).compare(by="algorithm", metric="accuracy", reduce="best")
    (row,) = frame.to_dict("records")
    assert [row[key] for key in ("algorithm.name", "metric", "mean", "runs", "missing", "best")] == [
        *("fedavg", "accuracy", 0.5, 1, 0, False)
    ]
    assert math.isnan(row["std"]) and math.isnan(row["p"])
    with pytest.raises(NotComparable, match="reduce: must be last"):
        load(tmp_path).compare(reduce="worst")


@pytest.mark.parametrize("over", ["mean", "micro", "min", "max", "gap", "p10", "p50", "p90"])
def test_a_client_that_diverged_is_left_out_of_nothing(tmp_path: Path, over: str) -> None:
    """Without it, the worst client would look better than it is."""
    made(tmp_path / "a", FEDAVG, [0.5], clients=[[0.9, math.nan, 0.2]])
    (mean,) = load(tmp_path).compare(subject="client", over=over)["mean"]
    assert math.isnan(mean)


def test_a_schedule_is_one_value_beside_numbers(tmp_path: Path) -> None:
    """Whose own keys can be asked for, and pair nothing by themselves."""
    falling = {"name": "exponential", "start": 0.1, "factor": 0.9, "over": "rounds", "warmup": 0.0, "warmup_from": 0.1}
    stepwise = {**falling, "name": "step", "milestones": [5, 7], "every": None, "over": "versions", "warmup": 2.0}
    for place, lr in enumerate([0.1, falling, {**falling, "factor": 0.5}, stepwise]):
        for seed in (0, 1):
            made(tmp_path / f"{place}{seed}", {**FEDAVG, "local": {"lr": lr}, "seed": seed}, [0.5 + place / 10])
    rows = cells(tmp_path)
    assert [(row["local.lr"], row["runs"]) for row in rows] == [
        ("0.1", "2"),
        ("exponential(start=0.1, factor=0.5)", "2"),
        ("exponential(start=0.1, factor=0.9)", "2"),
        ("step(start=0.1, factor=0.9, over=versions, warmup=2.0, warmup_from=0.1, milestones=[5, 7])", "2"),
    ]
    assert "-  " not in compare(tmp_path).output.replace("---", "")
    paired = load(tmp_path).compare(paired=True, baseline="local.lr=0.1")
    assert paired["local.lr"].tolist()[0].startswith("exponential(") and len(paired) == 3
    assert [row["local.lr.factor"] for row in cells(tmp_path / "00", tmp_path / "10", "--by", "local.lr.factor")] == [
        "",
        "0.9",
    ]


def test_lists_of_parts_are_named_by_them(tmp_path: Path) -> None:
    for name, uplink in {"a": [], "b": [{"name": "top_k", "share": 0.1}, {"name": "half"}]}.items():
        for seed in range(2):
            made(tmp_path / f"{name}{seed}", {**FEDAVG, "uplink": uplink, "seed": seed}, [0.5])
    assert [line.split()[0] for line in compare(tmp_path).stdout.splitlines()[1:3]] == ["none", "top_k+half"]
    shown = compare(tmp_path, "--paired", "--format", "markdown").stdout
    assert "| top_k+half | accuracy | 2 |" in shown and "minus uplink=none" in shown
