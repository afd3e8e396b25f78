"""A user's own module that hides one of raysim's packages is told by name, and nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

# The installed program, as pip writes it. Unlike `python -m raysim`, it does not look into the current folder first.
PROGRAM = "import sys; sys.path.pop(0); sys.argv[0] = 'raysim'; from raysim.cli.app import main; main()"


def listing(folder: Path, *line: str, first: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """What `raysim list delay` answers there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(first), str(ROOT)))}
    command = [sys.executable, *line, "list", "delay"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["actors.py", "results/__init__.py", "raysim.py"])
def test_the_program_refuses_a_folder_with_a_module_of_this_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    answer = listing(tmp_path, "-c", PROGRAM)
    assert answer.returncode == 2
    assert f"{tmp_path / name}: it hides raysim's own package" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_importing_raysim_tells_it_too(tmp_path: Path) -> None:
    """In a job, the working directory comes first on the path of all processes."""
    name = "results.py"
    (tmp_path / name).touch()
    answer = listing(tmp_path, "-m", "raysim", first=tmp_path)
    assert answer.returncode != 0
    assert f"HiddenPackage: {tmp_path / name}" in answer.stderr.splitlines()[-1]


def test_folders_and_copies_of_raysim_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert listing(tmp_path, "-c", PROGRAM).returncode == 0
    copy = tmp_path / "copy"
    for package in ("actors", "raysim", "results"):
        (copy / package).mkdir(parents=True)
        (copy / package / "__init__.py").touch()
    assert listing(copy, "-c", PROGRAM).returncode == 0
