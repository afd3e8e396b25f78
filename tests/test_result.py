"""What Python is given of a run: `raysim.run` and its result."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import write
from conftest import Simulate, digits, quadratic
from peers_runs import peers

import raysim
from raysim.data import federate
from raysim.runs.execution import Execution
from results.info import Status


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
    result = raysim.run(scenario, out=tmp_path, inline=True, observers=[lambda progress: seen.append(progress.round)])
    assert result.vectors()["w"].tolist() == [2.0]
    assert seen[-1] == 3
    assert raysim.Result(str(result.folder)).digest == result.digest


def test_python_runs_files_too(tmp_path: Path) -> None:
    raw = quadratic([1.0, 3.0], "fedavg", {"dispatch": {"per_round": 2}}, 3)
    path, out = write(tmp_path, raw), tmp_path / "runs"
    for given in (path, str(path)):
        assert raysim.run(given, out=out, inline=True).vectors()["w"].tolist() == [2.0]
    for scenarios in (str(path), [path], [raw]):
        assert [outcome.status for outcome in raysim.run_all(scenarios, out=out, inline=True)] == ["done before"]
    for call in (raysim.run, lambda given, **_: raysim.run_all([given])):
        with pytest.raises(raysim.ScenarioError, match="must be a Scenario, plain data or a path, got nothing"):
            call(None, out=out)  # type: ignore[arg-type]
    searched = write(tmp_path, raw | {"sweep": {"search": {"over": {"local.lr": {"low": 0.1, "high": 1.0}}}}})
    with pytest.raises(raysim.ScenarioError, match=r"sweep.search: must not .*; tune the file with `raysim sweep`"):
        raysim.run_all(searched, out=out)


def test_overrides_that_are_no_list_of_texts_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, quadratic([1.0], "fedavg", {"dispatch": {"per_round": 1}}, 3))
    folder = raysim.run(path, out=tmp_path / "runs", inline=True).folder
    changed: list[Callable[[Any], object]] = [
        lambda overrides: raysim.load_scenario(path, overrides),
        lambda overrides: raysim.load_sweep(path, overrides),
        lambda overrides: raysim.resume(folder, overrides),
    ]
    for change, overrides in itertools.product(changed, ("run.rounds=4", {"run.rounds": 4}, 4, [4])):
        with pytest.raises(raysim.ScenarioError) as told:
            change(overrides)
        assert [problem.path for problem in told.value.problems] == ["overrides"]
        assert 'must be a list of texts such as ["run.rounds=100"]' in str(told.value)


def test_a_peer_that_is_not_there_is_refused(simulate: Simulate) -> None:
    with_server = simulate(quadratic([1.0], "fedavg", {"dispatch": {"per_round": 1}}, 1))
    of_peers = simulate(peers(data__clients=3, run__rounds=1))
    for take in (raysim.Result.module, raysim.Result.state_dict):
        with pytest.raises(ValueError, match="because the run had a server, got 99; leave it out"):
            take(with_server, peer=99)
        with pytest.raises(ValueError, match="peer: must be from 0 to 2, got 3"):
            take(of_peers, peer=3)
    client = simulate(digits(run__rounds=1, run__save_clients=True, algorithm="scaffold"))
    with pytest.raises(ValueError, match="client: must be one with a saved model, got 99; they are "):
        client.module(client=99)


def test_whoever_watches_may_end_a_run(tmp_path: Path) -> None:
    def watch(progress: Any) -> None:
        if progress.round >= 2:
            raise raysim.StopRun("seen enough")

    scenario = raysim.parse_scenario(digits(run__rounds=4, run__evaluate_every=2))
    result = raysim.run(scenario, out=tmp_path / "runs", inline=True, observers=[watch])
    assert (result.info["status"], result.info["ended_early"]) == ("stopped", "seen enough")
    assert result.pandas("evaluations")["round"].max() < 3


def test_whoever_watches_cannot_end_a_run_that_is_over(tmp_path: Path) -> None:
    """On Ray, a run may come to its end before its last progress is looked at."""
    scenario = raysim.parse_scenario(digits(run__rounds=2))
    result = raysim.run(scenario, out=tmp_path, inline=True)
    Execution(scenario, result.folder).settle(Status.STOPPED, early="seen enough")
    assert raysim.Result(result.folder).info == result.info


def test_a_result_shows_its_folder_and_how_the_run_stands(simulate: Simulate) -> None:
    result = simulate(digits(run__rounds=1))
    assert repr(result) == f"Result({str(result.folder)!r}), finished"
