"""Many runs at once: their tables with scenario keys as columns."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from conftest import Simulate, digits, quadratic
from reported_runs import evaluation
from reported_runs import made as reported

from results import NotARun, UnknownKey, load


def made(folder: Path, scenario: dict[str, Any], value: float = 0.5, **info: Any) -> Path:
    """A run's folder, with one evaluation a round."""
    rows = {"evaluations": [evaluation(number, value * number) for number in (1, 2)]}
    return reported(folder, rows, **{"scenario": scenario, **info})


def test_keys_that_differ_become_columns_beside_the_rows(tmp_path: Path) -> None:
    made(tmp_path / "a", {"seed": 0, "algorithm": {"name": "fedavg"}, "world": {"delay": {"sigma": 5}}}, 0.1)
    made(
        tmp_path / "deep" / "b",
        {"seed": 1, "algorithm": {"name": "fedbuff", "buffer": 3}, "world": {"delay": {"sigma": 5}}},
        0.2,
    )
    frame = load(tmp_path).pandas("evaluations", ["value"])
    assert frame.columns.tolist() == ["value", "seed", "algorithm.name", "algorithm.buffer"]
    assert frame["value"].tolist() == pytest.approx([0.1, 0.2, 0.2, 0.4])
    assert frame["algorithm.name"].tolist() == ["fedavg"] * 2 + ["fedbuff"] * 2
    assert frame["algorithm.buffer"].fillna(-1).tolist() == [-1, -1, 3, 3]


def test_rows_and_columns_are_chosen_before_they_are_read(tmp_path: Path) -> None:
    runs = load(made(tmp_path / "a", {"algorithm": {"name": "x"}, "model": {"hidden": [8, 4]}}))
    table = runs.table("evaluations", ["round", "value"], pc.field("round") == 2, ["algorithm", "model.hidden"])
    assert table.to_pylist() == [{"round": 2, "value": 1.0, "algorithm.name": "x", "model.hidden": "[8, 4]"}]
    assert runs.table("updates", keys=["algorithm"]).num_rows == 0


def test_kinds_of_values(tmp_path: Path) -> None:
    """Integers and floats give numbers, anything else text; 5 and 5.0 are the same value, 1 and true are not."""
    made(tmp_path / "a", {"x": 1, "same": 5, "mixed": 1, "flag": True})
    made(tmp_path / "b", {"x": 2.5, "same": 5.0, "mixed": None, "flag": 1})
    made(tmp_path / "c", {"x": None, "same": 5, "mixed": "none", "flag": True})
    keys = load(tmp_path).keys()
    assert {name: values.to_pylist() for name, values in keys.items()} == {
        "x": [1.0, 2.5, None],
        "mixed": ["1", None, "none"],
        "flag": ["true", "1", "true"],
    }


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match="must be a folder of runs, but there is none"):
        load(tmp_path / "nowhere")
    with pytest.raises(NotARun, match=r"with run\.json in it, or hold such folders; got none"):
        load(tmp_path)
    made(tmp_path / "a", {"seed": 0})
    with pytest.raises(UnknownKey, match=r"sed: must be a key .* nearest are \['seed'\]"):
        load(tmp_path).table("evaluations", keys=["sed"])
    with pytest.raises(ValueError, match=r"evaluations: columns must be of run, step.*, got \['values'\]"):
        load(tmp_path).table("evaluations", ["values"])
    made(tmp_path / "other", {"seed": 1}, run="a")
    with pytest.raises(NotARun, match=r"holds the run 'a', which .* holds too"):
        load(tmp_path)


def test_the_same_folder_twice_is_one_run(tmp_path: Path) -> None:
    folder = made(tmp_path / "a", {"seed": 0})
    assert len(load(tmp_path, folder, tmp_path / "a" / ".." / "a")) == 1


def test_tasks_say_what_each_worker_did_when(simulate: Simulate) -> None:
    result = simulate(digits())
    tasks, updates, steps = (result.pandas(name) for name in ("tasks", "updates", "steps"))
    counts = tasks.task.value_counts()
    assert counts["step"] == len(steps)
    used = updates[updates.status == "used"]
    assert -(-len(used) // 3) <= counts["train"] <= len(used)  # chunks of at most three clients
    assert counts["evaluate"] == result.pandas("evaluations").step.nunique()
    assert set(tasks.worker) == {"inline"}
    (worker,) = result.info["workers"]
    assert worker["worker"] == "inline" and worker["gpu"] is None
    assert {(worker["node"], worker["pid"])} == set(zip(tasks.node, tasks.pid, strict=True))
    assert (tasks.seconds > 0).all()
    trained = tasks[tasks.task == "train"].groupby("step").seconds.sum()
    np.testing.assert_array_less(used.groupby("step").seconds.sum(), trained)
    ended = tasks.started_s + tasks.seconds
    assert tasks.started_s.min() >= 0
    assert ended.max() <= result.info["seconds"]["total"]


def test_the_training_samples_can_be_evaluated_too(simulate: Simulate) -> None:
    """Quadratic data test on what they train on; other data have more training samples."""
    both = {"run__evaluate_on": ["test", "train"]}
    frame = simulate(quadratic([1.0, 3.0], "fedavg", {"dispatch": {"per_round": 2}}, 2, **both)).pandas("evaluations")
    values = frame.groupby(["round", "split"], observed=True).value.first().unstack()
    assert values["test"].tolist() == values["train"].tolist()
    frame = simulate(digits(**both)).pandas("evaluations")
    samples = frame.groupby("split", observed=True).samples.unique()
    assert samples["train"].tolist() == [1438]
    assert samples["test"].tolist() == [359]
