"""Examples run from top to bottom."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = """
import nbclient, nbformat, sys
notebook = nbformat.read(sys.argv[1], as_version=4)
assert not any(cell.get("outputs") for cell in notebook.cells), "it must be kept without outputs"
nbclient.NotebookClient(notebook, timeout=900).execute()
print(notebook.cells[-1].outputs[-1])
"""

pytestmark = pytest.mark.docs


def run(place: Path, *words: str) -> str:
    paths = [str(EXAMPLES.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, *words], cwd=place, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_here() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} - {"README.md", "__pycache__"} == {
        *("asyncfeded.py", "asyncfeded.yaml", "fedvarp.yaml"),
        *("directions.py", "directions.yaml"),
        "bring_your_own.ipynb",
        "first_steps.ipynb",
        "in_one_file.py",
        "own_algorithm.py",
        "own_experiment.py",
        "own_peer_algorithm.py",
        "traces",
    }


def test_an_algorithm_with_a_server(tmp_path: Path) -> None:
    fedavg, own = (float(line.split()[-1]) for line in run(tmp_path, f"{EXAMPLES / 'own_algorithm.py'}").splitlines())
    assert own > fedavg > 0.9


def test_an_algorithm_without_a_server(tmp_path: Path) -> None:
    averaging, tracking = run(tmp_path, f"{EXAMPLES / 'own_peer_algorithm.py'}").splitlines()
    assert float(tracking.split()[-1]) < float(averaging.split()[-1]) / 2  # how far peers are apart


def test_an_experiment(tmp_path: Path) -> None:
    printed = run(tmp_path, f"{EXAMPLES / 'own_experiment.py'}", "runs")
    assert printed.startswith("finished\n")
    assert len((tmp_path / "runs" / "comparison.csv").read_text().splitlines()) == 21


def test_the_first_notebook(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    assert "text/plain" in run(tmp_path, "-c", NOTEBOOK, str(EXAMPLES / "first_steps.ipynb"))


def test_a_notebook_that_brings_everything(tmp_path: Path) -> None:
    """In at most 60 lines, it gets as far as a figure of its report."""
    pytest.importorskip("nbclient")
    path = EXAMPLES / "bring_your_own.ipynb"
    cells = json.loads(path.read_text())["cells"]
    assert sum("".join(cell["source"]).count("\n") + 1 for cell in cells if cell["cell_type"] == "code") <= 60
    assert "<svg" in run(tmp_path, "-c", NOTEBOOK, str(path))


def test_traces(tmp_path: Path) -> None:
    """They are what their script makes, and the scenario that uses them runs."""
    shutil.copytree(EXAMPLES / "traces", tmp_path / "examples" / "traces")
    run(tmp_path, "examples/traces/make_traces.py")
    for name in ("devices.csv", "charging.csv"):
        assert (tmp_path / "examples" / "traces" / name).read_bytes() == (EXAMPLES / "traces" / name).read_bytes()
    printed = run(tmp_path, "-m", "raysim", "run", "examples/traces/traces.yaml", "--inline", "--set", "run.rounds=20")
    assert "20 rounds" in printed
