"""`raysim doctor`: what it says of this machine, and whether a run would fail."""

from pathlib import Path
from typing import Any

import pytest
from command_line import QUICKSTART, command, process, write
from conftest import Raw, digits

RING: Raw = {"algorithm": "decfedavg", "topology": "ring", "data__clients": 6, "world": {}}


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def shown(folder: Path, *words: str, **changes: Any) -> tuple[int, str]:
    path = write(folder, digits(**changes))
    answer = command("doctor", path, "--inline", "--seconds", "0", *words)
    return answer.exit_code, answer.stdout


def test_it_measures_a_client_and_proposes_resources(tmp_path: Path) -> None:
    code, text = shown(tmp_path)
    assert code == 0
    for part in ("this process (here)", "nothing is wrong", "a client", "memory of an actor", "30 trainings, 3 steps"):
        assert part in text
    assert "proposed: --set resources.client_actors=" in text


def test_peers_are_measured_too(tmp_path: Path) -> None:
    code, text = shown(tmp_path, **RING)
    assert code == 0
    assert "measured on " in text


def test_a_run_in_which_nobody_trains_is_told(tmp_path: Path) -> None:
    """The server waits for more updates than ever arrive."""
    code, text = shown(tmp_path, algorithm={"name": "fedbuff", "buffer": 1000})
    assert code == 0
    assert "note: no client trains in this run, so none was measured" in text
    assert "proposed" not in text


def test_a_run_that_would_fail_is_told(tmp_path: Path) -> None:
    code, text = shown(tmp_path, algorithm="toys:Hungry")
    assert code == 1
    assert "wrong: train for version 1: OutOfMemoryError" in text
    assert "resources.gpus_per_client" in text
    assert "proposed" not in text


def test_data_that_are_missing_are_told(tmp_path: Path) -> None:
    data = {"name": "arrays", "path": str(tmp_path / "d.npz"), "clients": 30, "partition": "iid"}
    code, text = shown(tmp_path, data=data)
    assert code == 1
    assert "1 paths missing" in text
    assert "wrong: load data: data.path: must be an .npz file" in text
    assert "loads the data, and has no" in text


def test_a_wrong_scenario_is_refused(tmp_path: Path) -> None:
    answer = command("doctor", write(tmp_path, digits(run__round=3)), "--inline")
    assert (answer.exit_code, "did you mean 'rounds'" in answer.stderr) == (2, True)


@pytest.mark.ray
@pytest.mark.slow
def test_it_examines_a_local_ray() -> None:
    answer = process("doctor", QUICKSTART, "--seconds", "1", "--set", "resources.gpus_per_client=0.5")
    assert answer.returncode == 1
    assert "the cluster must have 1 GPU, got 0" in " ".join(answer.stdout.split())
