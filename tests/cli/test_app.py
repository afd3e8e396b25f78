"""The command line: what it prints, what it writes, how it ends. And what Python is given of a run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
from conftest import PYTHONPATH, ROOT, Raw, Simulate, digits, quadratic
from ruamel.yaml import YAML
from safetensors import safe_open
from typer.testing import CliRunner
from typer.testing import Result as Answer

import raysim
from raysim.cli.app import app
from results import TABLES, write_json

QUICKSTART = ROOT / "scenarios" / "quickstart.yaml"


def command(*arguments: object) -> Answer:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, which finds the tests' algorithms."""
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    line = [sys.executable, "-m", "raysim", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, env=environment, check=False)


def write(folder: Path, raw: Raw, name: str = "scenario") -> Path:
    path = folder / f"{name}.yaml"
    YAML().dump(raw, path)
    return path


# --- check, list, schema ----------------------------------------------------------------------------------------------


def test_check_says_what_is_right() -> None:
    answer = command("check", QUICKSTART, "--set", "algorithm.buffer=20")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout == f"{QUICKSTART}: right (quickstart, fedbuff, 500 clients)\n"


def test_check_reads_all_files_and_says_all_that_is_wrong(tmp_path: Path) -> None:
    one = write(tmp_path, digits(sed=1), "one")
    two = write(tmp_path, digits(local__lr=0, run__round=1), "two")
    answer = command("check", one, QUICKSTART, two)
    assert answer.exit_code == 2
    assert answer.stdout == f"{QUICKSTART}: right (quickstart, fedbuff, 500 clients)\n"
    lines = answer.stderr.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        [str(one), "sed"],
        [str(two), "local.lr"],
        [str(two), "run.round"],
    ]


def test_list_shows_every_name_with_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = command("list").stdout.splitlines()
    for key in ("algorithm", "data", "data.partition", "server_data", "model", "world.delay", "world.availability"):
        assert sum(line.startswith(f"{key} ") for line in lines) == 1
    assert any("fedbuff" in line and "(Nguyen et al. 2022)" in line for line in lines)
    assert any("scripted" in line and "delays[i][0]" in line for line in lines)


def test_the_json_schema_takes_what_is_right_and_refuses_what_is_wrong() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(command("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid(YAML(typ="safe").load(QUICKSTART))
    own = {"name": "toys:Buffered", "size": 3}
    for change in ({"world__delay": "none"}, {"model": "mlp"}, {"algorithm": "toys:Median"}, {"algorithm": own}):
        assert valid(digits(**change)), change
    for change in ({"sed": 1}, {"model": "mpl"}, {"local__lr": 0}, {"algorithm": {"name": "fedbuff", "size": 3}}):
        assert not valid(digits(**change)), change


# --- run --------------------------------------------------------------------------------------------------------------


def test_a_run_prints_its_summary_and_leaves_tables_model_and_run_json(tmp_path: Path) -> None:
    path = write(tmp_path, digits())
    answer = command("run", path, "--inline", "--out", tmp_path / "runs", "--set", "algorithm.buffer=2")
    assert answer.exit_code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("digits-20")
    assert "digits  finished" in answer.stdout
    assert f"results in {folder}" in answer.stdout
    info = json.loads((folder / "run.json").read_text())
    assert info["run"] == folder.name
    assert (info["name"], info["status"], info["seed"], info["error"]) == ("digits", "finished", 0, None)
    assert info["scenario"]["algorithm"]["buffer"] == 2
    assert info["scenario_hash"] == raysim.load_scenario(path, ["algorithm.buffer=2"]).hash
    assert set(info["digest"]) == {"model", "tables", "run"}
    assert info["digest"]["run"] in answer.stdout.replace("\n", "").replace(" ", "")
    assert info["started_at"] <= info["finished_at"]
    assert set(info["versions"]) == {"python", "raysim", "numpy", "ray", "torch"}
    with safe_open(folder / "model.safetensors", "np") as model:
        assert set(model.keys()) == {"w", "buffers"}
        parameters = json.loads(model.metadata()["parameters"])
    assert sum(int(np.prod(shape)) for _, shape, _ in parameters) == info["parameters"] == 65 * 16 + 17 * 10


def test_tables_are_read_by_everybody(simulate: Simulate) -> None:
    duckdb = pytest.importorskip("duckdb")
    result = simulate(digits())
    for name in ("steps", "updates", "evaluations", "partition"):
        rows = result.table(name).num_rows
        assert rows > 0
        assert ds.dataset(result.folder / name).count_rows() == rows
        assert len(pd.read_parquet(result.folder / name)) == rows
        counted = duckdb.sql(f"select count(*), count(distinct run) from '{result.folder / name}/*.parquet'").fetchall()
        assert counted == [(rows, 1)]
        assert result.table(name).schema.equals(TABLES[name])


def test_the_updates_table_holds_every_dispatch_once(simulate: Simulate) -> None:
    result = simulate(digits())
    updates = result.pandas("updates")
    totals = result.info["totals"]
    assert sorted(updates.dispatch) == list(range(totals["dispatched"]))
    assert updates.status.value_counts().to_dict() == {key: totals[key] for key in set(updates.status)}
    assert len(result.pandas("steps")) == totals["steps"]
    assert updates[updates.status == "used"].weight.groupby(updates.step).size().eq(10).all()


def test_a_dry_run_has_the_same_timeline_and_no_model(tmp_path: Path, simulate: Simulate) -> None:
    raw = digits(world__dropout={"probability": 0.2})
    answer = command("run", write(tmp_path, raw), "--dry", "--out", tmp_path / "dry")
    assert answer.exit_code == 0
    assert "digits  dry" in answer.stdout
    assert "first updates" in answer.stdout
    (folder,) = (tmp_path / "dry").iterdir()
    assert not (folder / "model.safetensors").exists()
    dry, real = raysim.Result(folder), simulate(raw)
    assert dry.info["totals"] == real.info["totals"]
    assert dry.info["status"] == "dry"
    assert len(dry.table("evaluations")) == 0
    for name in ("updates", "steps", "partition"):
        table = dry.table(name).drop_columns(["run"])
        known = [column for column in table.column_names if table[column].null_count < len(table)]
        assert table.select(known).equals(real.table(name).select(known)), name
    assert {"weight", "staleness", "arrived_at"} <= set(dry.pandas("updates").dropna(axis=1, how="all").columns)


def test_nothing_is_started_if_one_scenario_is_wrong(tmp_path: Path) -> None:
    right, wrong = write(tmp_path, digits(), "right"), write(tmp_path, digits(sed=1), "wrong")
    answer = command("run", right, wrong, "--inline", "--out", tmp_path / "runs")
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"{wrong}: sed: unknown key (did you mean 'seed'?)")
    assert not (tmp_path / "runs").exists()


def test_scenarios_are_run_one_after_another(tmp_path: Path) -> None:
    path = write(tmp_path, quadratic([1.0, 3.0], "fedavg", {"dispatch": {"per_round": 2}}, 2))
    assert command("run", path, path, "--inline", "--out", tmp_path / "runs").exit_code == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_failing_client_ends_the_run_with_exit_code_1_and_its_traceback_once(tmp_path: Path) -> None:
    path = write(tmp_path, digits(algorithm="toys:Failing", run__rounds=30))
    ended = process("run", path, "--inline", "--out", tmp_path / "runs")
    assert ended.returncode == 1
    assert ended.stderr.count("Traceback (most recent call last)") == 1
    assert "in update" in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("The run failed in train for version ")
    assert "ZeroDivisionError: this client divides by zero - client 3, its dispatch 0, model version " in last
    assert last.endswith(", train")
    (folder,) = (tmp_path / "runs").iterdir()
    result = raysim.Result(folder)
    assert result.info["status"] == "failed"
    assert "client 3, its dispatch 0" in result.info["error"]
    assert len(result.table("updates")) == result.info["totals"]["dispatched"]
    shown = command("show", folder)
    assert shown.exit_code == 0
    assert "digits  failed" in shown.stdout


@pytest.mark.parametrize("how", ["--inline", "--dry"])
def test_a_script_that_cannot_be_followed_fails_the_run(tmp_path: Path, how: str) -> None:
    delay = {"name": "scripted", "delays": [[2.0, 0.0]]}
    raw = quadratic([1.0], "fedavg", {"dispatch": {"picks": [[0], [0]]}, "delay": delay}, 2)
    with pytest.raises(raysim.RunFailed, match=r"ValueError: .*round 1 must pick idle clients"):
        command("run", write(tmp_path, raw), how, "--out", tmp_path / "runs")
    (folder,) = (tmp_path / "runs").iterdir()
    info = raysim.Result(folder).info
    assert info["status"] == "failed"
    assert "round 1 must pick idle clients" in info["error"]


def test_data_that_are_not_there_fail_the_run(tmp_path: Path) -> None:
    path = write(tmp_path, digits(data__name="mnist", data__root=str(tmp_path)))
    for how in ("--inline", "--dry"):
        with pytest.raises(raysim.RunFailed, match=r"FileNotFoundError: .* set `download: true`"):
            command("run", path, how, "--out", tmp_path / "runs")


def test_results_cannot_go_into_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, digits())
    assert command("run", path, "--inline", "--out", path).exit_code == 2


def test_a_wrong_scenario_ends_the_process_with_exit_code_2(tmp_path: Path) -> None:
    ended = process("run", write(tmp_path, digits(sed=1)), "--inline", "--out", tmp_path / "runs")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "sed: unknown key" in ended.stderr
    assert "Traceback" not in ended.stderr


# --- show -------------------------------------------------------------------------------------------------------------


def test_show_sums_up_a_finished_run(simulate: Simulate) -> None:
    result = simulate(digits(data__local_test=0.2, run__evaluate_clients=5))
    answer = command("show", result.folder)
    assert answer.exit_code == 0
    for text in ("digits  finished", "fedbuff, digits, 30 clients, mlp, seed 0", "global", "5 clients", "accuracy"):
        assert text in answer.stdout


def test_show_sums_up_a_killed_run(simulate: Simulate) -> None:
    """It says running for ever, and has no digest, totals or model."""
    result = simulate(digits())
    gone = ("digest", "totals", "seconds", "parameters", "input_shape", "classes")
    info: dict[str, Any] = {key: value for key, value in result.info.items() if key not in gone}
    write_json(result.folder, {**info, "status": "running", "finished_at": None})
    (result.folder / "model.safetensors").unlink()
    answer = command("show", result.folder)
    assert answer.exit_code == 0
    assert "digits  running" in answer.stdout
    assert "8 rounds" in answer.stdout


def test_show_refuses_what_is_no_run(tmp_path: Path) -> None:
    answer = command("show", tmp_path)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"{tmp_path}: a run's folder must hold run.json")


# --- Python -----------------------------------------------------------------------------------------------------------


def test_a_result_holds_tables_vectors_and_the_model(simulate: Simulate) -> None:
    """The model's accuracy is what the table says."""
    import torch

    result = simulate(digits())
    assert result.pandas("steps").step.tolist() == result.table("steps")["step"].to_pylist()
    vectors = result.vectors()
    assert {key: vector.dtype for key, vector in vectors.items()} == {"w": np.float32, "buffers": np.float32}
    from raysim.data import federate

    scenario = raysim.parse_scenario(result.info["scenario"])
    federation = federate(scenario.data, scenario.server_data, scenario.seed)
    images = federation.test.x[federation.evaluation_rows].astype(np.float32) / 255
    inputs = (images - federation.mean) / federation.std
    module = result.module()
    with torch.no_grad():
        predicted = module(torch.tensor(inputs, dtype=torch.float32).permute(0, 3, 1, 2)).argmax(1).numpy()
    evaluations = result.pandas("evaluations").query("metric == 'accuracy'")
    assert not module.training
    assert np.mean(predicted == federation.test.y[federation.evaluation_rows]) == evaluations.value.iloc[-1]


def test_python_runs_scenarios_too(tmp_path: Path) -> None:
    seen: list[int] = []
    scenario = raysim.parse_scenario(quadratic([1.0, 3.0], "fedavg", {"dispatch": {"per_round": 2}}, 3))
    result = raysim.run(scenario, out=tmp_path, inline=True, progress=lambda progress: seen.append(progress.round))
    assert result.vectors()["w"].tolist() == [2.0]
    assert seen[-1] == 3
    assert raysim.Result(str(result.folder)).digest == result.digest
