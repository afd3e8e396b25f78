"""A worker's share of a GPU, here of one that the CPU stands in for."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT, digits

import raysim
from raysim.workers.device import CONTEXT_BYTES, STAND_IN, open_device, stand_in


@pytest.fixture(autouse=True)
def stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAND_IN, "16")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")


def test_a_process_keeps_to_its_share_of_the_memory_with_what_cuda_takes() -> None:
    device = open_device(0.25)
    assert (device.kind, device.visible, device.share) == ("cpu", "3", 0.25)
    assert device.limit_bytes is not None
    assert device.limit_bytes + CONTEXT_BYTES == 4 * 2**30
    assert open_device(1.0).limit_bytes is None
    assert open_device(0.0).visible is None


def test_a_share_that_is_too_small_for_cuda_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"must be more than 0\.037 on this GPU, .*, got 0\.03; raise it"):
        open_device(0.03)


def test_a_stand_in_gives_the_bits_of_the_cpu(tmp_path: object) -> None:
    shared = raysim.run(digits(run__rounds=2, resources__gpus_per_client=0.25), out=str(tmp_path), inline=True)
    on_cpu = raysim.run(digits(run__rounds=2), out=str(tmp_path), inline=True)
    assert shared.digest == on_cpu.digest


def test_a_stand_in_is_refused_outside_of_tests(tmp_path: object) -> None:
    with pytest.raises(raysim.ScenarioError, match=f"{STAND_IN}: is for tests only, which set PYTEST_CURRENT_TEST too"):
        stand_in({STAND_IN: "16"})
    line = [sys.executable, "-m", "raysim", "run", "scenarios/quickstart.yaml", "--inline", "--out", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    refused = subprocess.run(line, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert (refused.returncode, os.listdir(str(tmp_path))) == (2, [])
    assert refused.stderr.startswith(f"environment: {STAND_IN}: is for tests only")
