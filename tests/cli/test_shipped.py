"""The version, and the scenario files that come with raysim."""

from pathlib import Path

import pytest
from command_line import command
from conftest import ROOT

import raysim
from results import CannotWrite

SHIPPED = ROOT / "scenarios"


def test_the_version_is_printed() -> None:
    assert command("--version").stdout == f"raysim {raysim.__version__}\n"


def test_the_shipped_scenarios_are_listed() -> None:
    lines = command("scenarios").stdout.splitlines()
    assert sorted(lines) == sorted(str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*.yaml"))


def test_the_shipped_scenarios_are_copied_into_a_new_folder(tmp_path: Path) -> None:
    answer = command("scenarios", "--copy", tmp_path / "mine" / "scenarios")
    assert answer.exit_code == 0
    copies = {path.relative_to(tmp_path / "mine" / "scenarios"): path.read_text() for path in tmp_path.rglob("*.yaml")}
    assert copies == {path.relative_to(SHIPPED): path.read_text() for path in SHIPPED.rglob("*.yaml")}


def test_copying_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "quickstart.yaml").write_text("mine")
    answer = command("scenarios", "--copy", tmp_path)
    assert answer.exit_code == 2
    assert "must be a new or empty folder" in answer.stderr
    assert (tmp_path / "quickstart.yaml").read_text() == "mine"
    assert command("scenarios", "--copy", tmp_path / "quickstart.yaml").exit_code == 2
    with pytest.raises(CannotWrite, match="Not a directory"):
        command("scenarios", "--copy", tmp_path / "quickstart.yaml" / "mine")
