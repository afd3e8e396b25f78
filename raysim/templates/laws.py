"""Tests of a custom class; run them with `python -m pytest`."""

from pathlib import Path

import raysim
from raysim.laws import failures


def test_it_keeps_the_laws_of_what_it_is() -> None:
    assert failures("template") == []  # `raysim test` prints a line for each law, and tries them on Ray, too


def test_its_scenario_runs(tmp_path: Path) -> None:
    scenario = raysim.load_scenario(Path(__file__).with_name("scenario.yaml"))
    result = raysim.run(scenario, out=tmp_path, inline=True)
    assert result.info["status"] == "finished"
