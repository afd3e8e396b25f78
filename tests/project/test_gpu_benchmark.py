"""The benchmark of GPUs runs, with small jobs, where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
