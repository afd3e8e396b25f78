"""Whether anything learned: no run at chance level is called best, and no interval leaves a metric's range."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from compared_runs import compare, made

from results import load
from results.plot import _edges
from results.report import report


def chance(samples: int = 400) -> dict[str, Any]:
    """A tenth of the labels is the most frequent one: three standard errors are 0.045."""
    return {"data": {"constant": {"accuracy": 0.1, "loss": 2.3, "samples": samples}}, "sweep": {"name": "study"}}


def two(folder: Path, ends: tuple[float, float], **info: Any) -> Path:
    for name, end in zip("ab", ends, strict=True):
        made(folder / name, {"algorithm": {"name": name}}, [0.08, end], losses=[2.4, 2.5], **info)
    return folder


def test_no_run_at_chance_level_is_the_best(tmp_path: Path) -> None:
    runs = two(tmp_path, (0.106, 0.126), **chance())
    text = compare(runs, "--metric", "accuracy", "--metric", "loss", "--format", "markdown").stdout
    assert "\\*" not in text and "best mean" not in text
    assert "no run is clearly better than the majority class, accuracy 0.1: none has learned" in text
    assert "no run is clearly better than the best constant prediction, loss 2.3: none has learned" in text
    assert "accuracy of the majority class: 0.1; of first evaluations: 0.08" in text
    assert "local steps of a dispatch: 7" in text
    page = report(load(runs)).html
    assert "none has learned" in page and "<h1>study: 2 runs</h1>" in page


@pytest.mark.parametrize(("samples", "marked"), [(400, [False, True]), (300, [False, False])])
def test_an_accuracy_is_better_by_three_standard_errors(tmp_path: Path, samples: int, marked: list[bool]) -> None:
    """0.15 is 0.05 above 0.1, and three times sqrt(0.1 * 0.9 / n) are 0.045 and 0.052."""
    frame = load(two(tmp_path, (0.12, 0.15), **chance(samples))).compare()
    assert frame["best"].tolist() == marked


def test_intervals_stay_within_the_range_of_a_metric(tmp_path: Path) -> None:
    for name, ends in {"a": (0.99, 0.2), "b": (0.01, 0.9)}.items():
        for seed, end in enumerate(ends):
            made(tmp_path / f"{name}{seed}", {"algorithm": {"name": name}, "seed": seed}, [end])
    (row,) = load(tmp_path).compare(paired=True).to_dict("records")
    assert (row["low"], row["high"]) == (-1.0, 1.0)
    table = pd.DataFrame({"mean": [0.9], "std": [0.3], "count": [2]})
    low, high = _edges(table, "ci", (0.0, 1.0))
    assert (low.tolist(), high.tolist()) == ([0.0], [1.0])
