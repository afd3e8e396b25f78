"""What README says is true: its commands and its Python are run as they are printed, and its links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
INSTALLING = [line.partition("  #")[0] for _, text in BLOCKS for line in text.splitlines() if "pip install" in line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the shipped scenarios, such as a checkout is one."""
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    return tmp_path


def run(folder: Path, script: str) -> str:
    """Runs a block of shell commands there; `raysim` is the one that is tested, installed or not."""
    script = f'set -e\nraysim() {{ "{sys.executable}" -m raysim "$@"; }}\n{script}'
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def block(language: str, word: str) -> str:
    (found,) = (text for kind, text in BLOCKS if kind == language and word in text)
    return str(found)


@pytest.mark.docs
def test_the_algorithm_can_be_pasted_and_run(folder: Path) -> None:
    algorithm = block("python", "class ")
    assert "Save it as `my_algorithm.py`" in README
    assert len(algorithm.strip().splitlines()) <= 25
    (folder / "my_algorithm.py").write_text(algorithm)
    printed = run(folder, block("sh", "my_algorithm"))
    assert "6 runs: 6 finished" in printed
    accuracy = {name: float(value) for name, value in re.findall(r"^(\S+)\s+(0\.\d+) ±", printed, re.MULTILINE)}
    assert accuracy.keys() == {"fedbuff", "my_algorithm:Momentum"}
    assert min(accuracy.values()) > 0.8


@pytest.mark.docs
def test_the_commands_on_results_do_what_they_say(folder: Path) -> None:
    printed = run(folder, block("sh", "raysim report"))
    assert "6 runs: 6 finished" in printed
    assert "rounds to" in printed
    assert "image/svg+xml" in (folder / "report.html").read_text()


@pytest.mark.docs
def test_the_python_runs(folder: Path) -> None:
    (folder / "script.py").write_text(block("python", "raysim.run"))
    assert "virtual_time" in run(folder, f'"{sys.executable}" script.py')


def test_there_are_two_commands_of_set_up_and_both_are_checked() -> None:
    checks = (ROOT / ".ci" / "run").read_text()
    assert len(INSTALLING) == 2
    assert all(command in checks for command in INSTALLING)


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", README))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
