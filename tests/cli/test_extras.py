"""Every extra can be installed beside raysim, and holds back nothing that raysim itself asks for."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions, version
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.package
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: wanted for name, wanted in PROJECT["optional-dependencies"].items() if name not in ("dev", "docs")}


def plain(requirement: str) -> str:
    """The name of a package as all spellings of it are compared, without extras and versions."""
    return re.sub("[-_.]+", "-", re.split(r"[\[><=~ ]", requirement)[0]).lower()


def test_no_extra_holds_back_what_raysim_gets_without_it(tmp_path: Path) -> None:
    """The full package mlflow would hold back pyarrow: pip would find no versions that fit."""
    pins, report = tmp_path / "constraints.txt", tmp_path / "report.json"
    pins.write_text("".join(f"{one}=={version(one)}\n" for one in map(plain, PROJECT["dependencies"])))
    wanted = [text for texts in EXTRAS.values() for text in texts if not text.startswith("raysim-fl[")]  # has others
    command = ["install", "--dry-run", "--quiet", "--report", str(report), "--constraint", str(pins), *wanted]
    done = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {plain(item["metadata"]["name"]) for item in json.loads(report.read_text())["install"]}
    here = {plain(one.name) for one in distributions()}
    assert {plain(text) for text in wanted} <= found | here
    assert not {plain(one) for one in PROJECT["dependencies"]} & found  # in another version
