"""Every extra can be installed beside raysim, and holds back nothing that raysim itself asks for."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.package
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: wanted for name, wanted in PROJECT["optional-dependencies"].items() if name not in ("dev", "docs")}


def resolved(folder: Path, *wanted: str) -> dict[str, str]:
    """The version of each package that pip would install for these in an empty environment."""
    report = folder / "report.json"
    command = ["install", "--dry-run", "--quiet", "--ignore-installed", "--report", str(report), *wanted]
    done = subprocess.run([sys.executable, "-m", "pip", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())["install"]
    return {plain(item["metadata"]["name"]): item["metadata"]["version"] for item in found}


def plain(requirement: str) -> str:
    """The name of a package as all spellings of it are compared, without extras and versions."""
    return re.sub("[-_.]+", "-", re.split(r"[\[><=~ ]", requirement)[0]).lower()


def test_no_extra_holds_back_what_raysim_gets_without_it(tmp_path: Path) -> None:
    """The full package mlflow would hold back pyarrow, and trackio Pillow: pip would find no versions that fit."""
    alone = resolved(tmp_path, *PROJECT["dependencies"])
    asked = map(plain, PROJECT["dependencies"])
    pins = tmp_path / "constraints.txt"
    pins.write_text("".join(f"{name}=={alone[name]}\n" for name in asked))
    beside = resolved(tmp_path, "--constraint", str(pins), *(text for wanted in EXTRAS.values() for text in wanted))
    assert {"mlflow-skinny", "tensorboard", "wandb"} <= beside.keys()
