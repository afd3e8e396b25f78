"""What Python is given of a run: `raysim.run` and its result."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Simulate, digits, quadratic

import raysim
from raysim.data import federate


def test_the_saved_tensors_make_the_module(simulate: Simulate) -> None:
    """Convolutions too, which lie in the flat vector in another order."""
    result = simulate(digits(model={"name": "cnn", "kernel": 3, "channels": [4], "hidden": 8}, run__rounds=1))
    tensors = result.state_dict()
    inputs = torch.linspace(-1, 1, 2 * 64).view(2, 1, 8, 8)
    convolved = torch.nn.functional.conv2d(inputs, tensors["conv1.weight"], tensors["conv1.bias"])
    module = result.module()
    assert module[0](inputs).detach() == pytest.approx(convolved, abs=1e-6)
    assert tensors["conv1.weight"].shape == (4, 1, 3, 3)


def test_a_result_holds_tables_vectors_and_the_model(simulate: Simulate) -> None:
    """The model's accuracy is what the table says."""
    result = simulate(digits())
    assert result.pandas("steps").step.tolist() == result.table("steps")["step"].to_pylist()
    vectors = result.vectors()
    assert {key: vector.dtype for key, vector in vectors.items()} == {"w": np.float32, "buffers": np.float32}
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


def test_whoever_watches_may_end_a_run(tmp_path: Path) -> None:
    def watch(progress: Any) -> None:
        if progress.round >= 2:
            raise raysim.StopRun("seen enough")

    scenario = raysim.parse_scenario(digits(run__rounds=4, run__evaluate_every=2))
    result = raysim.run(scenario, out=tmp_path / "runs", inline=True, progress=watch)
    assert (result.info["status"], result.info["ended_early"]) == ("stopped", "seen enough")
    assert result.pandas("evaluations")["round"].max() < 3
