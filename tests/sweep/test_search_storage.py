"""Trials in a database of Optuna's, and which of the tuned keys matter."""

from pathlib import Path

import optuna
import pytest
from command_line import command, write
from conftest import digits

from raysim.sweep import load_sweep
from raysim.sweep.search import Trial, importances


def test_a_database_gets_the_trials_and_is_written_anew(tmp_path: Path, here: None) -> None:
    address = f"sqlite:///{tmp_path}/tuning.db"
    over = {"local.lr": {"low": 0.01, "high": 0.1}}
    raw = digits(run__rounds=1, run__evaluate_every=1)
    raw["sweep"] = {"search": {"over": over, "trials": 2, "batch": 2, "storage": address}}
    path = write(tmp_path, raw)
    for _ in range(2):
        assert command("sweep", path, "--inline", "--out", tmp_path / "runs").exit_code == 0
    (name,) = optuna.get_all_study_names(address)
    study = optuna.load_study(study_name=name, storage=address)
    assert name == "digits-0" and len(study.trials) == 2 and set(study.best_params) == {"local.lr"}


def test_the_key_that_decides_the_score_is_the_important_one(tmp_path: Path) -> None:
    over = {"local.lr": {"low": 0.01, "high": 1.0}, "algorithm.server_lr": {"low": 0.1, "high": 1.0}}
    plan = load_sweep(write(tmp_path, digits() | {"sweep": {"search": {"over": over}}}))
    values = [{"local.lr": at / 20 + 0.01, "algorithm.server_lr": 0.1 + (at * 7 % 20) / 25} for at in range(20)]
    trials = [Trial(0, at, one, "finished", one["local.lr"], (), ()) for at, one in enumerate(values)]
    found = importances(trials, plan, 0)
    assert [*found] == ["local.lr", "algorithm.server_lr"] and found["local.lr"] > 0.8
    assert sum(found.values()) == pytest.approx(1.0)
    assert importances(trials[:3], plan, 0) == {}
