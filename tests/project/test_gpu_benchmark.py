"""The benchmark of GPUs runs, with small jobs, where there is none."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from recorded_calls import recorded

import raysim
from raysim.local import graphs
from raysim.workers.device import STAND_IN

ROOT = Path(__file__).parents[2]


def test_cuda_graphs_are_compared_in_pairs_on_a_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    gpu = import_module("gpu")
    found = {case: {"rate": 1.0 if case.graphs == "off" else 2.9, "digest": case.job} for case in gpu.graph_cases()}
    found[gpu.Case("resnet18", "gpu", repetition=2, graphs="on")] = {"error": "out of memory"}
    texts, held = zip(*gpu.gains(found), strict=True)
    assert texts[0] == "cnn, 10 a round: at least 3 times as fast with CUDA graphs, found 2.90"
    assert held == (False, *[True] * 7) and texts[3] == "resnet18: the same digest with and without, 2 pairs"
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--cpu", "--graphs"])
    with pytest.raises(SystemExit):
        gpu.main()


@pytest.mark.long
@pytest.mark.parametrize("job", ["cnn, 10 a round", "resnet18", "vit with lora", "gpt2 with lora"])
def test_its_networks_have_one_digest_with_and_without_recorded_steps(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    recordings: list[str] = []
    monkeypatch.setenv(STAND_IN, "16")
    monkeypatch.setattr(graphs, "DEVICE", "cpu")
    monkeypatch.setattr(graphs, "on_gpu", lambda work: recordings.append(job) or recorded(work))
    gpu = import_module("gpu")
    assert job in gpu.GRAPHED
    small = replace(gpu.SMALL_JOBS[job], epochs=4)  # so that each worker records
    made = [small.scenario(gpu.Case(job, "gpu", graphs=one), tmp_path) for one in ("off", "on")]
    off, on = (raysim.run(one, out=tmp_path, inline=True, progress=False).digest for one in made)
    assert off == on and recordings


@pytest.mark.long
def test_it_runs_on_the_cpu_and_all_its_checks_hold(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--cpu", "--out", str(tmp_path / "gpu.md")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, cwd=tmp_path, timeout=540)
    assert done.returncode == 0, done.stdout + done.stderr
    report = (tmp_path / "gpu.md").read_text()
    assert report in done.stdout
    assert report.count("\n| ") == 15  # a header, and the runs
    assert report.count("- holds: ") == 4
    assert "left out" not in report
