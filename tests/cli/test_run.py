"""`raysim run`: what it prints, what it writes, how it ends."""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import command, process, write
from conftest import Simulate, digits, quadratic
from safetensors import safe_open

import raysim
from raysim.observers import live


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


def test_a_log_names_the_folder_first_and_then_has_lines_of_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no terminal here. By default, a line comes every ten seconds."""
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=itertools.count(step=10).__next__))
    path = write(tmp_path, digits(run__rounds=3, run__evaluate_every=1))
    lines = command("run", path, "--inline", "--out", tmp_path / "runs").stdout.splitlines()
    (folder,) = (tmp_path / "runs").iterdir()
    assert lines[:2] == ["digits  starting in this process", f"{folder.name} writes to {folder}"]
    assert [line.partition("  t=")[0] for line in lines[2:5]] == [f"digits  round {n} of 3" for n in (1, 2, 3)]
    assert "accuracy" in lines[3] and lines[3].endswith(" left") and not lines[2].endswith(" left")
    assert lines[4].endswith("0:00:00 left")
    assert lines[5] == "digits  finished"


def test_a_dry_run_has_the_same_timeline_and_no_model(tmp_path: Path, simulate: Simulate) -> None:
    raw = digits(world__dropout={"probability": 0.2})
    answer = command("run", write(tmp_path, raw), "--dry", "--out", tmp_path / "dry")
    assert answer.exit_code == 0
    assert "digits  dry" in answer.stdout
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
    assert dry.pandas("steps").virtual_time.max() < dry.info["totals"]["virtual_time"]
    assert {"weight", "staleness", "arrived_at"} <= set(dry.pandas("updates").dropna(axis=1, how="all").columns)


def test_a_dry_run_that_is_interrupted_says_so_and_nothing_goes_on_with_it(tmp_path: Path) -> None:
    raw = digits(algorithm="toys_endings:Pressed", world__delay="none", run__rounds=2)
    with pytest.raises(KeyboardInterrupt):
        raysim.run(raw, out=tmp_path, dry=True)
    (folder,) = tmp_path.iterdir()
    dry = raysim.Result(folder)
    assert (dry.info["status"], dry.info["totals"]["steps"]) == ("interrupted", 1)
    with pytest.raises(KeyboardInterrupt):
        raysim.run(raw, out=tmp_path, resume=True, inline=True)
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(raysim.CannotGoOn, match="must hold a run that has trained, got a dry run"):
        raysim.resume(folder, inline=True)


def test_nothing_is_started_if_the_scenario_is_wrong(tmp_path: Path) -> None:
    wrong = write(tmp_path, digits(sed=1), "wrong")
    answer = command("run", wrong, "--inline", "--out", tmp_path / "runs")
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"{wrong}: sed: unknown key (did you mean 'seed'?)")
    assert not (tmp_path / "runs").exists()


def test_a_failing_client_ends_the_run_with_exit_code_1_and_its_traceback_once(tmp_path: Path) -> None:
    path = write(tmp_path, digits(algorithm="toys:Failing", run__rounds=30))
    ended = process("run", path, "--inline", "--out", tmp_path / "runs")
    assert ended.returncode == 1
    assert ended.stderr.count("Traceback (most recent call last)") == 1
    assert "in update" in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("The run failed in train for version ")
    assert "ZeroDivisionError: this client divides by zero - client 3, its dispatch 0, model version " in last
    assert ", train - raised in toys:Failing.update, " in last
    assert Path(last.rpartition(", ")[2].rpartition(":")[0]).name == "toys.py"
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
    with pytest.raises(raysim.RunFailed, match=r"world\.dispatch\.picks: round 1 must pick idle clients"):
        command("run", write(tmp_path, raw), how, "--out", tmp_path / "runs")
    (folder,) = (tmp_path / "runs").iterdir()
    info = raysim.Result(folder).info
    assert info["status"] == "failed"
    assert "round 1 must pick idle clients" in info["error"]
