"""A comparison in each of its formats."""

from pathlib import Path

import pytest
from compared_runs import FEDAVG, FEDBUFF, compare, made, several

from results import load
from results.report import report


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return several(tmp_path / "runs")


def test_the_table_in_the_terminal(runs: Path) -> None:
    """The best numbers have a star."""
    answer = compare(runs, "--columns", "world.delay.sigma")
    assert [line.rstrip() for line in answer.stdout.splitlines()] == [
        "algorithm           sigma=5         sigma=20",
        "fedavg     0.8500 ± 0.0707*  0.5500 ± 0.0707",
        "fedbuff     0.7500 ± 0.0707                -",
        "",
        "accuracy: last evaluation of the global model, split test",
        "mean ± sample standard deviation over seeds, 2 runs each",
        "* best mean of its column; † not significantly worse (t-test, paired by seed",
        "where seeds are shared, Holm-corrected within the column, p ≥ 0.05)",
    ]


def test_in_a_narrow_terminal_no_number_is_cut(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--columns", "world.delay.sigma", "--metric", "accuracy", "--metric", "loss")
    monkeypatch.setenv("COLUMNS", "40")
    shown = compare(runs, *options).stdout
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 40


def unlike(folder: Path) -> Path:
    """Three cases, which differ in more keys than 80 letters have room for; two share most values."""
    keys = ("local", "model", "server", "run", "world", "other")
    for name, values, algorithm in (("one", 1, FEDAVG), ("two", 1, FEDBUFF), ("three", 3, FEDBUFF)):
        scenario = {key: {f"long_name_of_a_key_in_{key}": values} for key in keys} | algorithm
        made(folder / name, {"name": f"case-{name}", **scenario, "extra": {"name": "none"}}, [0.5 + values / 10])
    return folder


def test_many_keys_are_told_in_one_column_where_they_have_no_room(tmp_path: Path) -> None:
    """Names come first, and what most rows share stands below the table."""
    lines = [line.rstrip() for line in compare(unlike(tmp_path)).stdout.splitlines()]
    assert lines[:3] == [
        "name        what                                                        accuracy",
        "case-one    fedavg                                                        0.6000",
        "case-two    fedbuff                                                       0.6000",
    ]
    assert lines[3].startswith("case-three  fedbuff, long_name_of_a_key_in_local=3,") and lines[3].endswith("0.8000*")
    shared = " ".join(lines).partition("what: unless a row says otherwise, ")[2]
    assert shared.startswith("long_name_of_a_key_in_local=1, long_name_of_a_key_in_model=1, ")
    assert max(map(len, lines)) <= 80


def test_by_name_says_what_differs_between_the_names(tmp_path: Path) -> None:
    unlike(tmp_path)
    for options in ((), ("--format", "markdown"), ("--format", "latex")):
        told = compare(tmp_path, "--by", "name", *options).stdout
        assert "fedbuff, long_name" in told.replace("\\_", "_")
    page = report(load(tmp_path), ["name"]).html
    assert "fedbuff, long_name" in page and "<td>world.long_name_of_a_key_in_world</td>" in page
    assert "name=" not in page.replace('name="viewport"', "")


def test_many_numbers_make_several_tables(runs: Path) -> None:
    metrics = [word for metric in ("accuracy", "loss", "up_bytes", "down_bytes") for word in ("--metric", metric)]
    lines = compare(runs, *metrics, "--columns", "world.delay.sigma").stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines].count("fedavg") == 2 and max(map(len, lines)) <= 80


def test_markdown(runs: Path) -> None:
    lines = compare(runs, "--metric", "accuracy", "--metric", "loss", "--format", "markdown").stdout.splitlines()
    table = [[text.strip() for text in line.strip("|").split("|")] for line in lines[:5]]
    assert table == [
        ["algorithm", "sigma", "accuracy", "loss"],
        [":--", ":--", "--:", "--:"],
        ["fedavg", "5", r"0.8500 ± 0.0707\*", r"0.1500 ± 0.0707\*"],
        ["fedavg", "20", "0.5500 ± 0.0707", "0.4500 ± 0.0707"],
        ["fedbuff", "5", "0.7500 ± 0.0707", "0.2500 ± 0.0707"],
    ]
    assert lines[6].startswith("accuracy, loss: last evaluation")


def test_latex(runs: Path) -> None:
    options = ("--columns", "world.delay.sigma", "--metric", "accuracy", "--metric", "loss", "--format", "latex")
    lines = compare(runs, *options).stdout.splitlines()
    assert [line for line in lines if not line.startswith("%")] == [
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"algorithm & accuracy, sigma=5 & accuracy, sigma=20 & loss, sigma=5 & loss, sigma=20 \\",
        r"\midrule",
        r"fedavg & 0.8500 $\pm$ 0.0707* & 0.5500 $\pm$ 0.0707 & 0.1500 $\pm$ 0.0707* & 0.4500 $\pm$ 0.0707 \\",
        r"fedbuff & 0.7500 $\pm$ 0.0707 & - & 0.2500 $\pm$ 0.0707 & - \\",
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
    assert r"| fedavg | 85.0 ± 7.1\* | 55.0 ± 7.1 |" in compare(runs, *options).stdout
    options = ("--metric", "up_bytes", "--metric", "accuracy", "--metric", "loss", "--percent", "--format", "markdown")
    lines = compare(runs, *options).stdout.splitlines()
    assert lines[0] == "| algorithm | sigma | up bytes, MB | accuracy, % | loss |"
    assert lines[2] == r"| fedavg | 5 | 0.0004 ± 0 | 85.0 ± 7.1\* | 0.1500 ± 0.0707\* |"


def test_one_run_has_no_deviation(tmp_path: Path) -> None:
    made(tmp_path / "a", FEDAVG, [2 / 3])
    assert compare(tmp_path).stdout.splitlines()[:2] == ["accuracy", "  0.6667"]
    assert "one run each" in compare(tmp_path).stdout


def test_keys_with_the_same_last_name_are_shown_whole(tmp_path: Path) -> None:
    for place in range(2):
        made(tmp_path / f"r{place}", {"local": {"lr": place}, "algorithm": {"lr": place}}, [0.5])
    assert compare(tmp_path).stdout.split()[:3] == ["local.lr", "algorithm.lr", "accuracy"]
