"""`raysim dashboard`: the file for Grafana."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import command

from actors.instrument import OF_POOLS
from raysim.cli.grafana import dashboard
from raysim.observers.gauges import OF_RUNS
from results import CannotWrite


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dashboard()["panels"]
    return found


def test_all_that_is_measured_has_a_panel() -> None:
    queries = " ".join(target["expr"] for panel in panels() for target in panel.get("targets", []))
    assert [found.name for found in (*OF_RUNS, *OF_POOLS) if f"{found.in_prometheus}{{" not in queries] == []


def test_panels_have_places_of_their_own() -> None:
    places = [panel["gridPos"] for panel in panels()]
    taken = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) == 23
    assert len({panel["id"] for panel in panels()}) == len(places)


def test_the_file_goes_into_a_folder_that_is_there(tmp_path: Path) -> None:
    assert command("dashboard", tmp_path).stdout == f"{tmp_path / 'raysim.json'}\n"
    assert json.loads((tmp_path / "raysim.json").read_text()) == dashboard()
    answer = command("dashboard", tmp_path / "none")
    assert answer.exit_code == 2
    assert "must be given a folder that is there" in answer.stderr


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "raysim.json").mkdir()
    with pytest.raises(CannotWrite, match=r"raysim\.json: cannot be written"):
        command("dashboard", tmp_path)
