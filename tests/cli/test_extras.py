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
from packaging.version import Version

pytestmark = pytest.mark.package
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: wanted for name, wanted in PROJECT["optional-dependencies"].items() if name not in ("dev", "docs")}


def plain(requirement: str) -> str:
    """The name of a package as all spellings of it are compared, without extras and versions."""
    return re.sub("[-_.]+", "-", re.split(r"[\[><=~ ]", requirement)[0]).lower()


def resolved(folder: Path, extras: list[str]) -> dict[str, str]:
    """The packages that pip would install or change for some extras beside raysim's own, with their new versions.

    Raysim's own have the versions that are here. Raises what pip says where some bounds, also of those that they bring,
    cannot all hold.
    """
    pins, report = folder / "constraints.txt", folder / "report.json"
    pins.write_text("".join(f"{one}=={version(one)}\n" for one in map(plain, PROJECT["dependencies"])))
    command = ["install", "--dry-run", "--quiet", "--report", str(report), "--constraint", str(pins)]
    wanted = [*PROJECT["dependencies"], *extras]
    done = subprocess.run([sys.executable, "-m", "pip", *command, *wanted], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    items = (item["metadata"] for item in json.loads(report.read_text())["install"])
    return {plain(item["name"]): item["version"] for item in items}


def test_no_extra_holds_back_what_raysim_gets_without_it(tmp_path: Path) -> None:
    """The full package mlflow would hold back pyarrow: pip would find no versions that fit."""
    wanted = [text for texts in EXTRAS.values() for text in texts if not text.startswith("raysim-fl[")]  # has others
    found, here = resolved(tmp_path, wanted), {plain(one.name) for one in distributions()}
    assert {plain(text) for text in wanted} <= found.keys() | here
    assert not {plain(one) for one in PROJECT["dependencies"]} & found.keys()  # in another version


def test_the_accountant_lowers_nothing_that_raysim_asks_for(tmp_path: Path) -> None:
    """It lowers attrs, which Ray and aiohttp bring: pip would refuse if it were too old for them."""
    found = resolved(tmp_path, PROJECT["optional-dependencies"]["privacy"])
    here = {plain(one.name): Version(one.version) for one in distributions()}
    lowered = {name for name, number in found.items() if name in here and Version(number) < here[name]}
    assert lowered <= {"attrs"}
    assert "dp-accounting" in found.keys() | here
