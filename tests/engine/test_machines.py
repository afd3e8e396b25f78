"""Instruction sets that a scenario pins, and what run.json says of the machines that a run computed on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from command_line import write
from conftest import PYTHONPATH, digits

import raysim
from actors import InlinePool, Machine, this_machine
from raysim.runs.execution import Execution
from raysim.runs.machines import differences, environment, kinds_of
from results import load

HERE = torch.backends.cpu.get_cpu_capability().lower()
OTHER = "default" if HERE != "default" else "avx2"


def run(folder: Path, *options: str, **variables: str) -> None:
    line = [
        sys.executable,
        "-m",
        "raysim",
        "run",
        str(write(folder, digits())),
        "--out",
        str(folder / "runs"),
        *options,
    ]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, **variables}
    subprocess.run(line, env=environment, check=True, capture_output=True)


@pytest.mark.skipif(HERE == "default", reason="the CPU has one instruction set only")
@pytest.mark.slow
def test_a_pinned_run_has_the_bits_of_that_instruction_set(tmp_path: Path) -> None:
    """Those that one gets by setting the variables of torch, oneDNN and MKL by hand."""
    run(tmp_path, "--inline", "--set", f"resources.cpu_capability={OTHER}")
    run(tmp_path, "--inline", **environment(OTHER))
    pinned, by_hand = load(tmp_path / "runs").runs
    assert pinned.info["digest"] == by_hand.info["digest"]
    assert [machine["capability"] for machine in pinned.info["machines"]] == [OTHER.upper()]
    assert pinned.info["scenario_hash"] != by_hand.info["scenario_hash"]


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.skipif(HERE == "default", reason="the CPU has one instruction set only")
@pytest.mark.long
def test_a_pinned_run_on_ray_equals_one_in_a_process(tmp_path: Path) -> None:
    run(tmp_path, "--inline", "--set", f"resources.cpu_capability={OTHER}")
    (inline,) = load(tmp_path / "runs").runs
    raw = digits(resources__cpu_capability=OTHER)
    on_ray = raysim.run(raysim.parse_scenario(raw), out=tmp_path)
    assert on_ray.info["digest"] == inline.info["digest"]
    (kind,) = on_ray.info["machines"]
    assert kind["workers"] == ["aggregator-0", "client-0", "client-1"]
    assert kind["capability"] == OTHER.upper()
    workers = {(worker["worker"], worker["node"], worker["pid"]) for worker in on_ray.info["workers"]}
    assert {name for name, *_ in workers} == set(kind["workers"])
    tasks = on_ray.pandas("tasks")
    assert set(zip(tasks.worker, tasks.node, tasks.pid, strict=True)) <= workers


def test_a_process_whose_torch_has_another_instruction_set_is_refused(tmp_path: Path) -> None:
    scenario = raysim.parse_scenario(digits(resources__cpu_capability=OTHER))
    with pytest.raises(raysim.ScenarioError, match=rf"torch uses '{HERE}'; run it on Ray, or start with ATEN_CPU_CAP"):
        raysim.run(scenario, out=tmp_path / "runs", inline=True)
    assert not (tmp_path / "runs").exists()
    assert raysim.run(raysim.parse_scenario(digits(run__rounds=1)), out=tmp_path, inline=True).info["machines"]


def test_what_may_give_other_bits_is_named() -> None:
    here = this_machine()
    older = here._replace(capability="other", numpy="1.0")
    entries = kinds_of({"client-1": here, "client-0": older, "client-2": here})
    assert [entry["workers"] for entry in entries] == [["client-0"], ["client-1", "client-2"]]
    assert differences(entries[:1], entries[:1]) == []
    named = differences(entries[:1], entries[1:])
    assert named == [f"capability other and {here.capability}", f"numpy 1.0 and {here.numpy}"]
    assert Machine(**{key: entries[0][key] for key in Machine._fields}) == older


def test_clients_on_gpus_are_not_compared_with_aggregators_on_cpus() -> None:
    here = this_machine()
    entries = kinds_of({"client-0": here._replace(gpu="H200"), "client-1": here._replace(gpu="H200"), "server-0": here})
    assert differences(entries, entries) == []
    others = kinds_of({"client": here, "server": here})  # as an inline run names its workers
    assert differences(entries, others) == ["gpu H200 and None"]


def test_a_worker_that_is_replaced_on_another_kind_of_machine_is_told(tmp_path: Path) -> None:
    """Also if none of the kind before is left, and only once."""
    pool = InlinePool()
    for progress in Execution(raysim.parse_scenario(digits(run__evaluate_every=1)), tmp_path)(pool):
        if progress.round == 3:
            pool.machines = {worker: machine._replace(capability="AVX") for worker, machine in pool.machines.items()}
            pool.lives.append(pool.lives[0])
    (note,) = json.loads((tmp_path / "run.json").read_text())["notes"]
    assert note == f"goes on with what may give other last bits (capability {HERE.upper()} and AVX)"
    assert len([warning for warning in pool.warnings if note in warning]) == 1
