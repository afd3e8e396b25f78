"""A run keeps the best model beside the last one, and one that ends early leaves its last good model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import command
from conftest import Raw, digits, override, quadratic
from peers_runs import peers
from stopping import stop_after
from test_divergence import exploding
from test_resume import killed, stopped

import raysim
from raysim import Result, ScenarioError

BEST: Raw = {"data__validation": 0.2, "run__keep_best": "validation accuracy", "run__evaluate_every": 1}
FAMILIES = {"server": digits(**BEST, local__lr=2.0), "peers": peers(**BEST, local__lr=2.0)}


def run(raw: Raw, out: Path, **options: Any) -> Result:
    return raysim.run(raysim.parse_scenario(raw), out=out, **{"inline": True, **options})


@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_model_is_that_of_a_run_that_ends_there(family: str, tmp_path: Path) -> None:
    """Also after a kill: the checkpoint holds it. With lr 2 the best model is hardly ever the last one."""
    raw = override(FAMILIES[family], run__checkpoint__every_rounds=1)
    result = run(raw, tmp_path)
    rows = result.pandas("evaluations").query("split == 'validation' and metric == 'accuracy' and subject != 'peer'")
    best = result.info["best"]
    assert (best["value"], best["step"]) == (rows.value.max(), rows.step[rows.value.idxmax()])
    shorter = run(override(raw, run__rounds=best["round"] + 1), tmp_path)
    assert (result.vectors(best=True)["w"] == shorter.vectors()["w"]).all()
    assert result.module(best=True).training is False
    left = killed(raw, tmp_path, after=best["round"] + 2)
    again = raysim.resume(left, inline=True)
    assert again.info["best"] == best
    assert again.info["digest"] == result.info["digest"]
    assert f"validation accuracy {best['value']:.4g} at step {best['step']}" in command("show", left).stdout


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_that_is_stopped_leaves_the_model_of_then(family: str, tmp_path: Path) -> None:
    """It counts in comparisons if that is asked for, and can go on."""
    raw = FAMILIES[family]
    early = stopped(raw, tmp_path, after=3)
    step = early.info["left"]["step"]
    shorter = run(override(raw, run__rounds=early.info["left"]["round"] + 1), tmp_path)
    assert step == early.info["totals"]["steps"] == shorter.info["totals"]["steps"]
    assert (early.vectors()["w"] == shorter.vectors()["w"]).all()
    assert early.module().training is False
    assert early.info["ended_by"] == "user"
    out = early.folder.parent
    assert command("compare", out).exit_code == 2
    answer = command("compare", out, "--unfinished")
    assert (answer.exit_code, "stopped; counts" in answer.stderr) == (0, True)
    assert raysim.resume(early.folder, inline=True).info["status"] == "finished"


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.chaos
def test_a_run_on_ray_that_is_stopped_leaves_its_model_too(family: str, tmp_path: Path) -> None:
    """Its pool is interrupted by then, and is given a little more time."""
    early = raysim.run(override(FAMILIES[family], run__rounds=200), out=tmp_path, observers=[stop_after(3)])
    assert early.info["status"] == "stopped"
    shorter = run(override(FAMILIES[family], run__rounds=early.info["left"]["round"] + 1), tmp_path)
    assert (early.vectors()["w"] == shorter.vectors()["w"]).all()


def test_a_run_that_diverges_leaves_the_last_model_that_was_evaluated_as_finite(tmp_path: Path) -> None:
    """Client 3 diverges in round 2; the model of step 2 was evaluated before. A model that overflows has none."""
    result = run(exploding("loss"), tmp_path)
    assert result.info["status"] == "diverged"
    assert result.info["left"]["step"] == 2
    assert np.isfinite(result.vectors()["w"]).all()
    wanted = run(exploding("loss", run__rounds=2), tmp_path)
    assert (result.vectors()["w"] == wanted.vectors()["w"]).all()
    raw = quadratic([1.0], "fedavg", {"dispatch": {"per_round": 1}}, 3, local__lr=1e20, run__evaluate_every=1)
    overflown = run(raw, tmp_path)
    assert overflown.info["left"]["step"] == 1
    assert "left" in command("show", overflown.folder).stdout


def test_a_model_of_a_run_under_way_is_refused(tmp_path: Path) -> None:
    early = stopped(digits(), tmp_path, after=3)
    left = killed(digits(), tmp_path, after=3)
    with pytest.raises(FileNotFoundError, match=r"must be finished to have model\.safetensors"):
        Result(left).vectors()
    with pytest.raises(FileNotFoundError, match=r"must be finished to have best\.safetensors"):
        early.vectors(best=True)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"run__keep_best": "test accuracy"}, "run.keep_best: must be text that matches"),
        ({"run__keep_best": "validation accuracy"}, "run.keep_best: needs validation samples"),
        ({"run__keep_best": "validation speed", "data__validation": 0.1}, "run.keep_best: needs a metric of which it"),
    ],
)
def test_a_best_model_must_be_picked_on_validation_samples(changes: Raw, told: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        raysim.parse_scenario(digits(**changes))
    assert told in str(refused.value)
