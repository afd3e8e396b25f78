"""Runs side by side: numbers that can be checked by hand, in every format, beside published ones."""

import csv
import io
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import Simulate, digits
from ruamel.yaml import YAML
from typer.testing import CliRunner
from typer.testing import Result as Answer

import raysim
from raysim.cli.app import app
from results import NotComparable, Writer, load, write_json

Scenario = dict[str, Any]
FEDAVG: Scenario = {"algorithm": {"name": "fedavg", "weights": "samples"}}
FEDBUFF: Scenario = {"algorithm": {"name": "fedbuff", "buffer": 10}}


def made(
    folder: Path,
    scenario: Scenario,
    accuracies: Sequence[float],
    *,
    losses: Sequence[float] = (),
    clients: Sequence[Sequence[float]] = (),
    **info: Any,
) -> Path:
    """A run's folder: an evaluation each two rounds, a step of 100 bytes up and 200 down each round.

    clients: in each evaluation, the accuracies of clients' own models.
    """
    scenario = {"seed": 0, **scenario}
    writer = Writer(folder, folder.name)
    for number in range(2 * len(accuracies)):
        when = {"step": number + 1, "round": number, "virtual_time": number + 1.5}
        counts = {"used": 2, "discarded": 0, "in_flight": 3, "samples": 20}
        writer.add("steps", {**when, **counts, "up_bytes": 100, "down_bytes": 200})
        ended = {"client": 0, "dispatch": number, "status": "used", "dispatched_at": 0.0, "version": 0}
        writer.add("updates", {**when, **ended, "staleness": 0.0, "samples": 20, "local_steps": 7})
        if number % 2:
            rows = [("global", None, "accuracy", accuracies[number // 2])]
            rows += [("global", None, "loss", loss) for loss in losses[number // 2 : number // 2 + 1]]
            own = clients[number // 2] if clients else ()
            rows += [("client", member, "accuracy", value) for member, value in enumerate(own)]
            for subject, member, metric, value in rows:
                what = {"subject": subject, "member": member, "metric": metric, "value": value}
                writer.add("evaluations", {**when, **what, "split": "test", "samples": 10 * (1 + (member or 0))})
    writer.close()
    about = {"run": folder.name, "name": "n", "status": "finished", "seed": scenario["seed"], "seconds": {"total": 8.0}}
    write_json(folder, {**about, "scenario": scenario, **info})
    return folder


def compare(*arguments: object) -> Answer:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=False)


def refused(*arguments: object) -> str:
    """The message on stderr."""
    answer = compare(*arguments)
    assert (answer.exit_code, answer.stdout) == (2, "")
    return answer.stderr


def cells(*arguments: object) -> list[dict[str, str]]:
    """The rows of the CSV, as text."""
    answer = compare(*arguments, "--format", "csv")
    assert answer.exit_code == 0, answer.output
    return list(csv.DictReader(io.StringIO(answer.stdout)))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two algorithms with two delays, two seeds each, and accuracies that end with round numbers."""
    last = {("fedavg", 5): (0.8, 0.9), ("fedavg", 20): (0.5, 0.6), ("fedbuff", 5): (0.7, 0.8)}
    for (algorithm, sigma), ends in last.items():
        for seed, end in enumerate(ends):
            part = FEDAVG if algorithm == "fedavg" else FEDBUFF
            scenario = {"seed": seed, **part, "world": {"delay": {"name": "half_normal", "sigma": sigma}}}
            made(tmp_path / "runs" / f"{algorithm}-{sigma}-{seed}", scenario, [0.1, end], losses=[2.0, 1.0 - end])
    return tmp_path / "runs"


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_a_group_has_the_mean_and_the_sample_standard_deviation_of_its_runs(runs: Path) -> None:
    """By default groups are told by all keys that differ but seed; those that go with a part's name say nothing new."""
    rows = cells(runs)
    assert list(rows[0]) == ["algorithm.name", "world.delay.sigma", "metric", "mean", "std", "runs", "missing"]
    assert [(row["algorithm.name"], float(row["world.delay.sigma"])) for row in rows] == [
        ("fedavg", 5),
        ("fedavg", 20),
        ("fedbuff", 5),
    ]
    assert [float(row["mean"]) for row in rows] == pytest.approx([0.85, 0.55, 0.75])
    assert [float(row["std"]) for row in rows] == pytest.approx([math.sqrt(0.005)] * 3)  # 2 * 0.05² / (2 - 1)
    assert {(row["metric"], row["runs"], row["missing"]) for row in rows} == {("accuracy", "2", "0")}


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


def test_a_target_takes_rounds_time_and_bytes(tmp_path: Path) -> None:
    """Until the first evaluation that is as good, after the second round or the fourth. Two runs never get there."""
    made(tmp_path / "a", FEDAVG, [0.7, 0.8, 0.6])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.8, 0.2, 0.3])
    made(tmp_path / "c", FEDBUFF, [0.8, 0.9, 0.9])
    made(tmp_path / "d", {**FEDBUFF, "seed": 1}, [0.1, 0.2, 0.3])
    made(tmp_path / "e", {"algorithm": {"name": "scaffold"}}, [0.1, 0.2, 0.3])
    frame = load(tmp_path).compare("algorithm", target=[("accuracy", 0.8)])
    table = frame.pivot(index="algorithm.name", columns="metric", values="mean")
    assert table["rounds_to_accuracy_0.8"].fillna(-1).tolist() == [3, 2, -1]
    assert table["virtual_time_to_accuracy_0.8"].fillna(-1).tolist() == [3.5, 2.5, -1]
    assert table["bytes_to_accuracy_0.8"].fillna(-1).tolist() == [900, 600, -1]
    rounds = frame[frame["metric"] == "rounds_to_accuracy_0.8"]
    assert rounds[["runs", "missing"]].to_numpy().tolist() == [[2, 0], [1, 1], [0, 1]]
    lines = compare(tmp_path, "--by", "algorithm", "--target", "accuracy=0.8", "--format", "markdown").stdout
    assert "3.000 ± 1.414 (2) |" in lines
    assert "| 2 (1/2) |" in lines
    assert "| - (0/1) |" in lines


def test_a_loss_reaches_a_target_from_above(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.1, 0.1, 0.1], losses=[3.0, 0.9, 0.5])
    frame = load(tmp_path).compare(metric=(), target=[("loss", 1.0), ("loss", 0.1)])
    assert frame["metric"].tolist()[::3] == ["rounds_to_loss_1", "rounds_to_loss_0.1"]
    assert frame["mean"].tolist()[::3] == pytest.approx([4, math.nan], nan_ok=True)


def test_a_metric_may_be_missing_in_some_runs(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5], losses=[1.0])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.7])
    rows = cells(tmp_path, "--metric", "loss", "--metric", "accuracy")
    assert [(row["mean"], row["runs"], row["missing"]) for row in rows] == [("1.0", "1", "1"), ("0.6", "2", "0")]


# --- groups -----------------------------------------------------------------------------------------------------------


def test_runs_of_a_group_differ_in_seed_only(runs: Path) -> None:
    assert refused(runs, "--by", "algorithm") == (
        "runs that cannot be compared: those with algorithm.name=fedavg must differ in seed only, got several values "
        "of world.delay.sigma; add --by KEY or --columns KEY, for example --by world.delay.sigma\n"
    )
    assert len(cells(runs, "--by", "algorithm", "--columns", "world.delay.sigma")) == 3
    assert len(cells(runs, "--by", "algorithm", "--by", "seed", "--columns", "world.delay.sigma")) == 6


def test_what_numbers_do_not_depend_on_makes_no_groups(tmp_path: Path) -> None:
    for seed, (name, actors) in enumerate([("x", 1), ("y", 2)]):
        made(tmp_path / name, {**FEDAVG, "seed": seed, "name": name, "resources": {"client_actors": actors}}, [0.5])
    assert [row["runs"] for row in cells(tmp_path)] == ["2"]
    made(tmp_path / "z", {**FEDAVG, "seed": 2, "name": "z", "resources": {"client_actors": 1, "chunk": 9}}, [0.5])
    assert [row["resources.chunk"] for row in cells(tmp_path)] == ["", "9.0"]
    assert [row["name"] for row in cells(tmp_path, "--by", "name")] == ["x", "y", "z"]


def test_a_key_that_is_null_and_one_that_is_missing_are_one_group(tmp_path: Path) -> None:
    """Groups are in order: without the value first, then by number."""
    for seed, extra in enumerate([{"clip": 10}, {"clip": None}, {"clip": 9}, {}]):
        made(tmp_path / f"r{seed}", {**FEDAVG, **extra, "seed": seed}, [0.5])
    assert [(row["clip"], row["runs"]) for row in cells(tmp_path)] == [("", "2"), ("9.0", "1"), ("10.0", "1")]


def test_of_the_same_seed_twice_the_newest_finished_counts(tmp_path: Path) -> None:
    made(tmp_path / "b", FEDAVG, [0.2], finished_at="2026-01-02T00:00:00+00:00")
    made(tmp_path / "a", FEDAVG, [0.1], finished_at="2026-01-01T00:00:00+00:00")
    made(tmp_path / "c", FEDAVG, [0.3], status="failed", finished_at="2026-01-03T00:00:00+00:00")
    answer = compare(tmp_path, "--format", "csv", "--unfinished")
    assert [row["mean"] for row in csv.DictReader(io.StringIO(answer.stdout))] == ["0.2"]
    for left_out in ("a", "c"):
        note = f"{tmp_path / left_out}: left out, of the same scenario and seed as {tmp_path / 'b'}, which counts"
        assert note in answer.stderr.splitlines()


def test_runs_that_are_not_finished_are_named_and_left_out(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.7], status="failed")
    made(tmp_path / "c", {**FEDAVG, "seed": 2}, [0.9], status="running")
    answer = compare(tmp_path, "--format", "csv")
    assert ",0.5,,1,0\n" in answer.stdout
    failed, running = answer.stderr.splitlines()
    assert failed == f"{tmp_path / 'b'}: failed; left out"
    assert re.fullmatch(rf"{tmp_path}/c: running, last written 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC; left out", running)
    answer = compare(tmp_path, "--format", "csv", "--unfinished")
    assert answer.stdout.endswith(",3,0\n")
    assert f"{tmp_path / 'b'}: failed; counts" in answer.stderr.splitlines()


def test_if_no_run_is_finished_there_is_nothing_to_compare(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5], status="interrupted")
    assert refused(tmp_path) == (
        f"{tmp_path / 'a'}: interrupted; left out\nruns: must be finished to be compared, got none; add --unfinished\n"
    )


# --- what is asked for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--by sigma", "sigma: must be a key of the runs' scenarios, got none of that name; nearest are "),
        ("--by algorithm --columns algorithm.name", "columns: must be other keys than those of --by, got algorithm.n"),
        ("--metric acuracy", "metric: must be evaluated in a run, for subject global on split test, or be a total, "),
        ("--metric acuracy", "got acuracy; evaluated are global test accuracy; global test loss; totals are virtual_"),
        ("--split train", "got accuracy; evaluated are global test accuracy; "),
        ("--subject clients", "subject: must be one of global, client, unseen, peer, got 'clients'"),
        (
            "--over worst --subject client",
            "over: must be one of mean, micro, min, max, gap, p10, p50, p90, got 'worst'",
        ),
        ("--over gap", "over: must be of clients or peers, got 'gap' of the one global model"),
        ("--reduce max_of_last_0", "reduce: must be last, best, max_of_last_K, min_of_last_K or mean_of_last_K, K f"),
        ("--reduce best --metric auc", "reduce: must not be best for 'auc', of which it is not known which way is b"),
        ("--target accuracy", "target: must be metric=number, such as accuracy=0.8, got 'accuracy'"),
        ("--target accuracy=nan", "target: must be a number for accuracy or loss, got accuracy=nan"),
        ("--target auc=1", "target: must be a number for accuracy or loss, got auc=1"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_reason(runs: Path, options: str, message: str) -> None:
    assert message in refused(runs, *options.split())


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    assert "must be a run's folder, with run.json in it" in refused(tmp_path)


# --- formats ----------------------------------------------------------------------------------------------------------


def test_the_table_in_the_terminal(runs: Path) -> None:
    answer = compare(runs, "--columns", "world.delay.sigma")
    assert [line.rstrip() for line in answer.stdout.splitlines()] == [
        "algorithm          sigma=5         sigma=20",
        "fedavg     0.8500 ± 0.0707  0.5500 ± 0.0707",
        "fedbuff    0.7500 ± 0.0707                -",
        "",
        "accuracy: last evaluation of the global model, split test",
        "mean ± sample standard deviation over seeds, 2 runs each",
    ]


def test_a_terminal_that_is_too_narrow_gets_several_tables_and_nothing_is_cut(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of one metric stay together where they can."""
    options = ("--columns", "world.delay.sigma", "--metric", "accuracy", "--metric", "loss")
    monkeypatch.setenv("COLUMNS", "80")
    wide = compare(runs, *options).stdout
    monkeypatch.setenv("COLUMNS", "60")
    narrow = compare(runs, *options).stdout
    assert [line.split() for line in narrow.splitlines() if line.startswith("algorithm")] == [
        ["algorithm", "sigma=5", "sigma=20"]
    ] * 2
    monkeypatch.setenv("COLUMNS", "12")
    tiny = compare(runs, *options).stdout
    numbers = re.findall(r"\d\.\d{4}", wide)
    assert len(numbers) == 12
    assert sorted(re.findall(r"\d\.\d{4}", narrow)) == sorted(numbers)
    assert all(text.replace(" ", "") in re.sub(r"\s", "", tiny) for text in ("0.8500 ± 0.0707", "sigma=20"))


def test_markdown(runs: Path) -> None:
    lines = compare(runs, "--metric", "accuracy", "--metric", "loss", "--format", "markdown").stdout.splitlines()
    table = [[text.strip() for text in line.strip("|").split("|")] for line in lines[:5]]
    assert table == [
        ["algorithm", "sigma", "accuracy", "loss"],
        [":--", ":--", "--:", "--:"],
        ["fedavg", "5", "0.8500 ± 0.0707", "0.1500 ± 0.0707"],
        ["fedavg", "20", "0.5500 ± 0.0707", "0.4500 ± 0.0707"],
        ["fedbuff", "5", "0.7500 ± 0.0707", "0.2500 ± 0.0707"],
    ]
    assert lines[6].startswith("accuracy, loss: last evaluation")


def test_latex_has_the_best_of_each_column_in_bold(runs: Path) -> None:
    """The largest accuracy, the smallest loss; heads above heads where there are metrics and keys."""
    options = ("--columns", "world.delay.sigma", "--metric", "accuracy", "--metric", "loss", "--format", "latex")
    lines = compare(runs, *options).stdout.splitlines()
    assert [line for line in lines if not line.startswith("%")] == [
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r" & \multicolumn{2}{c}{accuracy} & \multicolumn{2}{c}{loss} \\",
        r"algorithm & sigma=5 & sigma=20 & sigma=5 & sigma=20 \\",
        r"\midrule",
        r"fedavg & \textbf{0.8500 $\pm$ 0.0707} & 0.5500 $\pm$ 0.0707 & "
        r"\textbf{0.1500 $\pm$ 0.0707} & 0.4500 $\pm$ 0.0707 \\",
        r"fedbuff & 0.7500 $\pm$ 0.0707 & -- & 0.2500 $\pm$ 0.0707 & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_special_characters_are_escaped(tmp_path: Path) -> None:
    for name in ("a_b|50%", "c"):
        made(tmp_path / name[0], {**FEDAVG, "x_y": name, "z.x_y": 0}, [0.5])
    latex = compare(tmp_path, "--format", "latex").stdout
    assert r"x\_y & accuracy \\" in latex
    assert r"a\_b|50\% & " in latex
    assert r"| a_b\|50% | " in compare(tmp_path, "--format", "markdown").stdout


def test_percent_is_of_accuracies_and_bytes_are_in_megabytes(runs: Path) -> None:
    options = ("--by", "algorithm", "--columns", "world.delay.sigma", "--percent", "--format", "markdown")
    assert "| fedavg | 85.0 ± 7.1 | 55.0 ± 7.1 |" in compare(runs, *options).stdout
    options = ("--metric", "up_bytes", "--metric", "accuracy", "--metric", "loss", "--percent", "--format", "markdown")
    lines = compare(runs, *options).stdout.splitlines()
    assert lines[0] == "| algorithm | sigma | up bytes, MB | accuracy, % | loss |"
    assert lines[2] == "| fedavg | 5 | 0.0004 ± 0 | 85.0 ± 7.1 | 0.1500 ± 0.0707 |"


def test_one_run_has_no_deviation(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [2 / 3])
    assert compare(tmp_path).stdout.splitlines()[:2] == ["accuracy", "  0.6667"]
    assert "one run each" in compare(tmp_path).stdout


def test_keys_with_the_same_last_name_are_shown_whole(tmp_path: Path) -> None:
    for place in range(2):
        made(tmp_path / f"r{place}", {"local": {"lr": place}, "algorithm": {"lr": place}}, [0.5])
    assert compare(tmp_path).stdout.split()[:3] == ["local.lr", "algorithm.lr", "accuracy"]


# --- published numbers ------------------------------------------------------------------------------------------------

ROWS = [
    {"algorithm": "fedavg", "world.delay.sigma": 5, "value": 81.6},
    {"algorithm": {"name": "fedbuff"}, "world.delay.sigma": 5, "value": 78.0, "std": 7.2},
    {"algorithm": "fedbuff", "world.delay.sigma": 50, "value": 44.0},
]


def published(folder: Path, rows: Any = ROWS, **more: Any) -> Path:
    path = folder / "paper.yaml"
    YAML().dump({"title": "Table 2", "unit": "percent", "rows": rows, **more}, path)
    return path


def test_published_numbers_stand_beside_ours(runs: Path, tmp_path: Path) -> None:
    options = (runs, "--by", "algorithm", "--columns", "world.delay.sigma", "--paper", published(tmp_path), "--percent")
    lines = compare(*options, "--format", "markdown").stdout.splitlines()
    headings = ["algorithm", *(f"sigma=5, {of}" for of in ("ours", "published", "difference")), "sigma=20, ours"]
    assert lines[0].startswith(f"| {' | '.join(headings)}")
    assert lines[2:4] == [
        "| fedavg | 85.0 ± 7.1 | 81.6 | +3.4 | 55.0 ± 7.1 | - | - |",
        "| fedbuff | 75.0 ± 7.1 | 78.0 ± 7.2 | -3.0 | - | - | - |",
    ]
    assert [line.rstrip() for line in lines[-2:]] == [
        "published: Table 2",
        "not run: algorithm=fedbuff, sigma=50: 44 %",
    ]
    latex = compare(*options, "--format", "latex").stdout
    assert r"fedbuff & 75.0 $\pm$ 7.1 & 78.0 $\pm$ 7.2 & $-$3.0 & -- & -- & -- \\" in latex
    assert r" & \multicolumn{3}{c}{sigma=5} & \multicolumn{3}{c}{sigma=20} \\" in latex
    table = compare(*options).stdout.splitlines()
    assert table[1].split() == ["algorithm", "ours", "published", "difference"]


def test_published_numbers_in_csv_are_fractions(runs: Path, tmp_path: Path) -> None:
    paper = published(tmp_path)
    answer = compare(runs, "--paper", paper, "--format", "csv", "--metric", "loss", "--metric", "accuracy")
    assert answer.stderr == "not run: algorithm=fedbuff, sigma=50: 44 %\n"
    frame = pd.read_csv(io.StringIO(answer.stdout)).query("metric == 'accuracy'")
    assert frame["paper"].fillna(-1).tolist() == pytest.approx([0.816, -1, 0.78])
    assert frame["paper_std"].fillna(-1).tolist() == pytest.approx([-1, -1, 0.072])
    assert frame["difference"].fillna(-1).tolist() == pytest.approx([0.034, -1, -0.03])
    assert pd.read_csv(io.StringIO(answer.stdout)).query("metric == 'loss'")["paper"].isna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": []}, "rows: List should have at least 1 item after validation, not 0, got []"),
        ({"unit": "promille"}, "unit: must be 'percent' or 'fraction', got 'promille'"),
        ({"metrics": "loss"}, "metrics: is unknown, got 'loss'"),
        ({"rows": [{"algorithm": "fedavg"}]}, "rows.0.value: must be given, got {'algorithm': 'fedavg'}"),
        ({"rows": [{"value": "44"}]}, "rows.0.value: must be a valid number, got '44'"),
        ({"rows": [{"value": 44, "std": -1}]}, "rows.0.std: must be greater than or equal to 0, got -1"),
        ({"rows": [44]}, "rows.0: must be a block of keys, got 44"),
        ({"metric": "loss"}, "Table 2: metric: must be one that is compared, accuracy, got 'loss'"),
        ({"rows": [{"sigma": 5, "value": 44}]}, "Table 2: rows.0: must have keys that make rows or columns (algorit"),
        (
            {"rows": [{"algorithm": "fedavg", "value": 44}]},
            "Table 2: rows.0: must be of one group of runs, got 2; give it world.delay.sigma too",
        ),
        ({"rows": [ROWS[0], ROWS[0]]}, "Table 2: rows.1: must be the only row of its group, got a second"),
    ],
)
def test_published_numbers_that_do_not_fit_are_refused(
    runs: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    assert message in refused(runs, "--paper", published(tmp_path, **change))


def test_a_file_that_is_no_yaml_is_refused(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "paper.yaml"
    assert refused(runs, "--paper", path) == f"{path}: cannot be read: No such file or directory\n"
    path.write_text("rows: [")
    assert refused(runs, "--paper", path).startswith(f"{path}: must be YAML in UTF-8: while parsing")
    path.write_text("- 1")
    assert refused(runs, "--paper", path).startswith(f"{path}: the file: must be a block of keys")
    path.write_text("{title: x, rows: [{value: 1, algorithm: 2026-01-01}]}")
    assert "rows.0.algorithm: " in refused(runs, "--paper", path)


# --- Python, and real runs --------------------------------------------------------------------------------------------


def test_python_is_given_a_frame_and_warned_of_runs_that_do_not_count(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [0.5])
    made(tmp_path / "b", {**FEDAVG, "seed": 1}, [0.7], status="failed")
    with pytest.warns(UserWarning, match=r"b: failed; left out"):
        frame = load(tmp_path).compare(by="algorithm", metric="accuracy", reduce="best")
    assert frame.to_dict("records")[0] == pytest.approx(
        {
            "algorithm.name": "fedavg",
            "metric": "accuracy",
            "mean": 0.5,
            "std": math.nan,
            "runs": 1,
            "missing": 0,
        },
        nan_ok=True,
    )
    with pytest.raises(NotComparable, match="reduce: must be last"):
        load(tmp_path).compare(reduce="worst")


def test_real_runs(simulate: Simulate) -> None:
    """The last accuracies, bytes and wall seconds that their own tables and run.json say."""
    results: dict[str, list[raysim.Result]] = {}
    for algorithm in ("fedavg", "fedbuff"):
        results[algorithm] = [simulate(digits(algorithm=algorithm), "--set", f"seed={seed}") for seed in (0, 1)]
    folder = results["fedavg"][0].folder.parent
    rows = cells(folder, "--by", "algorithm", "--metric", "accuracy", "--metric", "up_bytes", "--metric", "seconds")
    for row in rows:
        of_group = results[row["algorithm.name"]]
        last = [run.pandas("evaluations").query("metric == 'accuracy'").value.iloc[-1] for run in of_group]
        numbers = {
            "accuracy": last,
            "up_bytes": [run.pandas("steps").up_bytes.sum() for run in of_group],
            "seconds": [run.info["seconds"]["total"] for run in of_group],
        }[row["metric"]]
        assert float(row["mean"]) == pytest.approx(statistics.mean(numbers))
        assert float(row["std"]) == pytest.approx(statistics.stdev(map(float, numbers)))
    assert len(rows) == 6
