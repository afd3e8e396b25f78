"""Published numbers beside those of runs."""

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from compared_runs import compare, refused, several
from ruamel.yaml import YAML

ROWS = [
    {"algorithm": "fedavg", "world.delay.sigma": 5, "value": 81.6},
    {"algorithm": {"name": "fedbuff"}, "world.delay.sigma": 5, "value": 78.0, "std": 7.2},
    {"algorithm": "fedbuff", "world.delay.sigma": 50, "value": 44.0},
]


def published(folder: Path, rows: Any = ROWS, **more: Any) -> Path:
    path = folder / "paper.yaml"
    YAML().dump({"title": "Table 2", "unit": "percent", "rows": rows, **more}, path)
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return several(tmp_path / "runs")


def test_published_numbers_stand_beside_ours(runs: Path, tmp_path: Path) -> None:
    options = (runs, "--by", "algorithm", "--columns", "world.delay.sigma", "--paper", published(tmp_path), "--percent")
    lines = compare(*options, "--format", "markdown").stdout.splitlines()
    headings = ["algorithm", *(f"sigma=5, {of}" for of in ("ours", "published", "difference")), "sigma=20, ours"]
    assert lines[0].startswith(f"| {' | '.join(headings)}")
    assert lines[2:4] == [
        "| fedavg | **85.0 ± 7.1** | 81.6 | +3.4 | 55.0 ± 7.1 | - | - |",
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
            "Table 2: rows.0: must fit one group of runs, got 2 groups; give it world.delay.sigma too",
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
    assert refused(runs, "--paper", path).startswith(f"{path}: must be YAML in UTF-8: line 1, column 8: while parsing")
    path.write_text("- 1")
    assert refused(runs, "--paper", path).startswith(f"{path}: the file: must be a block of keys")
    path.write_text("{title: x, rows: [{value: 1, algorithm: 2026-01-01}]}")
    assert "rows.0.algorithm: " in refused(runs, "--paper", path)
