"""Sweeps whose runs have processes of their own."""

from pathlib import Path

from command_line import command, write
from conftest import digits

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
