"""What the services themselves read of runs that were sent to them, live or afterwards."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import command, write
from conftest import digits
from retold import retell
from toys_parts import Kept
from waiting import until

import raysim
from raysim.observers import TRACKERS
from results.keys import flatten

SWEEP = digits(run__rounds=4, run__evaluate_every=2, name="trial") | {"sweep": {"grid": {"seed": [0, 1]}}}


def sweep(folder: Path, *options: str) -> list[raysim.Result]:
    """Two runs of a sweep, by the command line."""
    answer = command("sweep", write(folder, SWEEP), "--inline", "--out", folder / "runs", *options)
    assert answer.exit_code == 0, answer.output
    return [raysim.Result(run.folder) for run in raysim.load(folder / "runs").runs]


def sent(result: raysim.Result) -> dict[int, dict[str, float]]:
    """By round, what is to be sent."""
    tracker = Kept()
    retell(result.run, tracker)
    return {round: {**point.metrics, "virtual_time": point.virtual_time} for round, point in tracker.kept.items()}


def log(result: raysim.Result, tracker: str) -> None:
    """Sends what the tracker has already."""
    (found,) = (one() for one in TRACKERS if one.model_fields["name"].default == tracker)
    retell(result.run, found)


def events(folder: Path) -> tuple[dict[str, list[tuple[float, int, float]]], dict[str, Any]]:
    """By tag, (time, step, value) of all scalars as TensorBoard reads them, and the scenario as its HParams has it."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    read = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    scalars = {tag: [(e.wall_time, e.step, e.value) for e in read.Scalars(tag)] for tag in read.Tags()["scalars"]}
    content = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    values = HParamsPluginData.FromString(content).session_start_info.hparams
    return scalars, {key: getattr(value, value.WhichOneof("kind")) for key, value in values.items()}


@pytest.mark.usefixtures("here")
def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    for result in sweep(tmp_path, "--set", "run.log=[tensorboard]"):
        scalars, values = found = events(result.folder / "tensorboard")
        for round, metrics in sent(result).items():
            time = metrics.pop("virtual_time")
            for name, value in metrics.items():
                number = pytest.approx(value, rel=1e-6)
                assert (time, round, number) in scalars[name]
                assert (time, int(time + 0.5), number) in scalars[f"virtual_time/{name}"]
        assert len(scalars["test/accuracy"]) == 2
        scenario = flatten(result.info["scenario"])
        assert values == {
            key: value if isinstance(value, int | float) else str(value) for key, value in scenario.items()
        }
        log(result, "tensorboard")
        assert events(result.folder / "tensorboard") == found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the library's own
@pytest.mark.usefixtures("here")
def test_mlflow_on_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    first, second = sweep(tmp_path, "--set", "run.log=[mlflow]")
    client = mlflow.MlflowClient("sqlite:///mlflow.db")

    def told(result: raysim.Result) -> Any:
        experiment = client.get_experiment_by_name("raysim")
        named = f"attributes.run_name = 'seed={result.info['seed']}'"
        (run,) = client.search_runs([experiment.experiment_id], named)
        (parent,) = client.search_runs([experiment.experiment_id], "attributes.run_name = 'trial'")
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        history = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
        points = {name: [(one.timestamp, one.step, one.value) for one in of_name] for name, of_name in history.items()}
        return run.info.status, run.data.params, run.data.tags["raysim.digest"], points

    for result in (first, second):
        status, values, digest, points = before = told(result)
        assert (status, digest) == ("FINISHED", result.digest)
        assert values == {key: str(value) for key, value in flatten(result.info["scenario"]).items()}
        expected: dict[str, list[tuple[int, int, float]]] = {}
        for round, metrics in sent(result).items():
            for name, value in metrics.items():
                expected.setdefault(name, []).append((round_ms(metrics["virtual_time"]), round, value))
        assert points == expected
        log(result, "mlflow")
        assert told(result) == before


def round_ms(virtual_time: float) -> int:
    return round(1000 * virtual_time)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_wandb_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    results = {f"seed={result.info['seed']}": result for result in sweep(tmp_path, "--set", "run.log=[wandb]")}
    live = {told["name"]: told for told in offline(tmp_path, 2)}
    assert live.keys() == results.keys()
    for name, result in results.items():
        told = live[name]
        assert told["group"] == "trial"
        assert told["config"].items() >= flatten(result.info["scenario"]).items()
        assert points(told) == sent(result)
        assert json.loads(told["summary"]["digest"]) == result.digest
        log(result, "wandb")
    for told in offline(tmp_path, 4):
        before = live[told["name"]]
        assert points(told) == points(before)
        assert all(told[key] == before[key] for key in ("id", "group"))


def offline(folder: Path, runs: int) -> list[dict[str, Any]]:
    """What W&B's files tell of runs, once its own process has written all of them."""
    from wandb_files import read

    until(lambda: sum(read(file)["ended"] for file in folder.rglob("*.wandb")) == runs)
    return [read(file) for file in folder.rglob("*.wandb")]


def points(told: dict[str, Any]) -> dict[int, dict[str, float]]:
    """By round, what W&B has of a run."""
    return {row["round"]: {k: v for k, v in row.items() if k[0] != "_" and k != "round"} for row in told["history"]}
