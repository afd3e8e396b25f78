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


def test_clients_own_models_are_held_to_each_client_s_majority_class(tmp_path: Path) -> None:
    """Client 0 has three of its four test samples in one label, and client 1 ten of twenty. The mean of both is 0.625;
    weighted by samples, it is 13 / 24. Three standard errors of 24 samples are about 0.3. Client 2 is unseen."""
    labels = {"data": {"labels": {"task": "classes"}}}
    keys = {"run": {"evaluate_clients": "all"}}
    held = [
        (0, "test", 3, 3),
        (0, "test", 4, 1),
        (1, "test", 5, 10),
        (1, "test", 6, 10),
        (1, "train", 6, 90),
        (2, "test", 3, 99),
    ]
    for name, ends in {"good": (1.0, 0.98), "bad": (0.7, 0.6)}.items():
        made(tmp_path / name, {**keys, "algorithm": {"name": name}}, [0.5], clients=[ends], held=held, **labels)
    found = load(tmp_path).compared(subject="client")
    assert found.frame["best"].tolist() == [False, True]
    assert "accuracy of each client's majority class: 0.625; of first evaluations: 0.65 to 0.99" in found.context
    micro = load(tmp_path).compared(subject="client", over="micro")
    assert any(line.startswith("accuracy of each client's majority class: 0.5417;") for line in micro.context)
    (line,) = load(tmp_path).compared().context
    assert line == "clients' own models were evaluated, too, and may rank otherwise: --subject client"
    none = load(tmp_path / "bad").compared(subject="client")
    assert none.context[0].startswith("no run is clearly better than each client's majority class, accuracy 0.625")


def test_labels_of_places_have_no_majority_class_of_a_client(tmp_path: Path) -> None:
    """The table `partition` counts samples of tokens and masks without their labels."""
    labels = {"data": {"labels": {"task": "classes", "places": [16]}}}
    for name, end in {"a": 0.5, "b": 0.6}.items():
        made(
            tmp_path / name, {"algorithm": {"name": name}}, [0.5], clients=[(end,)], held=[(0, "test", 0, 9)], **labels
        )
    found = load(tmp_path).compared(subject="client")
    assert found.frame["best"].tolist() == [False, True] and not found.context


def test_equal_differences_are_no_lack_of_runs(tmp_path: Path) -> None:
    for seed in (0, 1):
        for name, end in (("a", 0.5), ("b", 0.75)):
            made(tmp_path / f"{name}{seed}", {"algorithm": {"name": name}, "seed": seed}, [end])
    assert "* best mean of its column; no test, because differences do not vary" in compare(tmp_path).stdout
    made(tmp_path / "c", {"algorithm": {"name": "c"}, "seed": 0}, [0.9])
    assert "* best mean of its column; too few runs for a test" in compare(tmp_path).stdout


def test_intervals_stay_within_the_range_of_a_metric(tmp_path: Path) -> None:
    for name, ends in {"a": (0.99, 0.2), "b": (0.01, 0.9)}.items():
        for seed, end in enumerate(ends):
            made(tmp_path / f"{name}{seed}", {"algorithm": {"name": name}, "seed": seed}, [end])
    (row,) = load(tmp_path).compare(paired=True).to_dict("records")
    assert (row["low"], row["high"]) == (-1.0, 1.0)
    table = pd.DataFrame({"mean": [0.9], "std": [0.3], "count": [2]})
    low, high = _edges(table, "ci", (0.0, 1.0))
    assert (low.tolist(), high.tolist()) == ([0.0], [1.0])
