"""The oldest versions that pyproject.toml allows are enough, on the oldest Python that it allows."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.package
OLDEST = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
COMMANDS = (
    "run scenarios/quickstart.yaml --inline --set run.rounds=5",
    "run scenarios/quickstart.yaml --local 2 --set run.rounds=5",
    "run scenarios/lora.yaml --case fedit --inline --set run.rounds=2 --out adapted",
    "report runs -o report.html",
    "run --help",
)


def test_the_quickstart_runs_with_the_lowest_versions(tmp_path: Path) -> None:
    """uv finds them, and fetches several GB where its cache has none."""
    if shutil.which(f"python{OLDEST}") is None:
        pytest.skip(f"needs Python {OLDEST}, the oldest that raysim allows")

    def finish(*command: str | Path) -> str:
        where = {**os.environ, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(command, cwd=tmp_path, env=where, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    finish(sys.executable, "-m", "venv", tmp_path / "tools")
    finish(tmp_path / "tools" / "bin" / "pip", "install", "--quiet", "uv")
    uv, python = tmp_path / "tools" / "bin" / "uv", tmp_path / "lowest" / "bin" / "python"
    finish(uv, "venv", "--quiet", "--python", OLDEST, tmp_path / "lowest")
    lowest = ("--resolution", "lowest-direct", "-r", ROOT / "pyproject.toml")
    finish(uv, "pip", "install", "--quiet", "--python", python, *lowest)
    printed = [finish(python, "-m", "raysim", *words.split()) for words in COMMANDS]
    assert all("finished" in text for text in printed[:3]) and "figures in report.html" in printed[3]
