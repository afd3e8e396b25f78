"""The wheel, used from an empty folder by somebody who has no checkout."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import raysim

pytestmark = pytest.mark.package


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as a release is, which checks it, too; the sdist is beside it, and has no tests."""
    folder = tmp_path_factory.mktemp("build")
    address = ["https://forge.example.org/owner/raysim", "reports@example.org"]
    finish(sys.executable, str(ROOT / ".ci" / "release"), *address, "--out", str(folder))
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as files:
        assert not [name for name in files.getnames() if name.split("/")[1:2] in (["tests"], ["docs"])]
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed, without what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    finish(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel))
    return folder


def finish(*command: str, **how: Any) -> str:
    """Runs a command, which must succeed, and returns what it prints."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert ended.returncode == 0, ended.stderr
    return str(ended.stdout)


def test_the_wheel_works_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    def run(*command: str) -> str:
        return finish(*command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(installed)})

    raysim_program = str(installed / "bin" / "raysim")
    imported = run(sys.executable, "-c", "import raysim, actors, results; print(raysim, actors, results)")
    assert imported.count(str(installed)) == 3
    assert run(raysim_program, "--version") == f"raysim {raysim.__version__}\n"
    shipped = len(list((ROOT / "scenarios").rglob("*.yaml")))
    assert run(raysim_program, "scenarios", "--copy", "scenarios") == f"{shipped} scenarios in scenarios\n"
    file = "scenarios/quickstart.yaml"
    assert run(raysim_program, "check", file).startswith(f"{file}: right")
    assert "quickstart  finished" in run(raysim_program, "run", file, "--inline", "--set", "run.rounds=5")
    run(raysim_program, "report", "runs")
    assert "data:image/svg+xml" in (tmp_path / "report.html").read_text()


def test_the_wheel_has_the_version_the_licence_and_types(wheel: Path, installed: Path) -> None:
    assert wheel.name.startswith(f"raysim_fl-{raysim.__version__}-")
    assert all((installed / package / "py.typed").exists() for package in ("actors", "raysim", "results"))
    (metadata,) = installed.glob("raysim_fl-*.dist-info/METADATA")
    assert "\nLicense-Expression: Apache-2.0\n" in metadata.read_text()
