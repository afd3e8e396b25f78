"""Sweeps whose runs have processes of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import command, write
from conftest import PYTHONPATH, digits
from waiting import until

import raysim
from raysim.sweep import load_sweep


def test_runs_give_what_they_give_alone_and_finished_ones_are_not_run_again(tmp_path: Path) -> None:
    path, out = write(tmp_path, digits(run__rounds=4) | {"sweep": {"grid": {"seed": [0, 1]}}}), tmp_path / "runs"
    words = ["sweep", path, "--inline", "--out", out]
    answer = command(*words, "--parallel", 2)
    assert answer.exit_code == 0
    assert "2 runs: 2 finished" in answer.stdout
    runs = raysim.load(out / "digits")
    digests = {run.info["seed"]: run.info["digest"]["run"] for run in runs.runs}
    alone = raysim.run(load_sweep(path).scenarios()[1], out=tmp_path / "alone", inline=True)
    assert digests[1] == alone.digest != digests[0]
    answer = command(*words, "--set", "resources.client_actors=7")
    assert "2 runs: 2 done before" in answer.stdout
    assert len(raysim.load(out)) == 2


@pytest.mark.chaos
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_a_sweep_that_ends_early(number: signal.Signals, tmp_path: Path) -> None:
    raw = digits(run__rounds=5000, run__evaluate_every=5000) | {"sweep": {"grid": {"seed": [0, 1]}}}
    path, out = write(tmp_path, raw), tmp_path / "runs"
    line = [sys.executable, "-m", "raysim", "sweep", str(path), "--inline", "--parallel", "2", "--out", str(out)]
    process = subprocess.Popen(line, env=os.environ | {"PYTHONPATH": PYTHONPATH}, stdout=subprocess.DEVNULL)

    def processes() -> list[int]:
        runs = raysim.load(out).runs if any(out.glob("*/*/run.json")) else []
        return [run.info["workers"][0]["pid"] for run in runs if run.info.get("workers")]

    until(lambda: len(processes()) == 2, process)  # type: ignore[arg-type]
    children = processes()
    process.send_signal(number)
    assert process.wait() == (143 if number == signal.SIGTERM else -9)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
    standing = "interrupted" if number == signal.SIGTERM else "killed"
    assert {run.standing for run in raysim.load(out / "digits").runs} == {standing}
