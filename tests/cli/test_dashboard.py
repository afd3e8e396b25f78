"""`raysim dashboard`: the file for Grafana."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import command

from actors.instrument import OF_POOLS
from raysim.cli.serve import DASHBOARD
from raysim.observers.gauges import OF_RUNS

MEASURED = (*OF_RUNS, *OF_POOLS)


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def test_what_is_measured_is_what_panels_show() -> None:
    """Whether the run's label chooses the series, too."""
    queries = " ".join(target["expr"] for panel in panels() for target in panel.get("targets", []))
    assert set(re.findall(r"ray_raysim_\w+", DASHBOARD.read_text())) == {found.in_prometheus for found in MEASURED}
    assert [found.name for found in MEASURED if f'{found.in_prometheus}{{run=~"$run"' not in queries] == []


def test_panels_ask_for_labels_that_there_are() -> None:
    tags = {found.in_prometheus: {"run", *found.tags} for found in MEASURED}
    for panel in panels():
        for target in panel.get("targets", []):
            for name, conditions in re.findall(r"(ray_raysim_\w+)\{([^}]*)\}", target["expr"]):
                assert set(re.findall(r"(\w+)[!=]", conditions)) <= tags[name]
            names = re.findall(r"ray_raysim_\w+", target["expr"])
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert all(shown <= tags[name] for name in names)


def test_panels_say_what_instruments_mean() -> None:
    meanings = {found.in_prometheus: found.description for found in MEASURED}
    for panel in panels():
        names = [name for target in panel.get("targets", []) for name in re.findall(r"ray_raysim_\w+", target["expr"])]
        assert not names or any(meanings[name] in panel["description"] for name in names)


def test_the_file_goes_into_a_folder_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").write_text("theirs")
    (tmp_path / "raysim.json").symlink_to(tmp_path / "other")
    assert command("dashboard", tmp_path).stdout == f"{tmp_path / 'raysim.json'}\n"
    assert (tmp_path / "raysim.json").read_bytes() == DASHBOARD.read_bytes()
    assert (tmp_path / "other").read_text() == "theirs"  # no link is followed
    monkeypatch.setattr("os.getuid", lambda: -1)
    for folder, problem in ((tmp_path / "none", "a folder that is there"), (tmp_path, "a folder of your own")):
        answer = command("dashboard", folder)
        assert (answer.exit_code, f"must be given {problem}" in answer.stderr) == (2, True)
