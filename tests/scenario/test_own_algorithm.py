"""Algorithms of one's own, by module and class."""

from pathlib import Path
from typing import Any

import pytest
import toys
from conftest import digits
from refusals import problem

from raysim import Scenario, parse_scenario


def test_an_algorithm_may_be_a_class_of_ones_own() -> None:
    scenario = parse_scenario(digits(algorithm={"name": "toys:Buffered", "size": 3}))
    assert type(scenario) is Scenario
    assert isinstance(scenario.algorithm, toys.Buffered)
    assert (scenario.algorithm.size, scenario.algorithm.name) == (3, "toys:Buffered")
    assert isinstance(parse_scenario(digits(algorithm="toys:Counting")).algorithm, toys.Counting)


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (
            "nowhere:Mine",
            "algorithm.name: must be module:Class, with the module here or on PYTHONPATH, got 'nowhere:Mi",
        ),
        ("toys:Nothing", "whose import raises AttributeError: module 'toys' has no attribute 'Nothing'"),
        (".toys:Counting", "write toys:Counting, say"),
        ("broken:Mine", "whose import raises ZeroDivisionError: division by zero"),
        ("leaves:Mine", "whose import raises SystemExit: 0"),
        (":Mine", "write my_module:Mine, say"),
        (
            "json:loads",
            "must name a subclass of raysim.algorithms.Central or raysim.algorithms.Peer, got 'json:loads', which is",
        ),
        (
            "json:JSONDecoder",
            "raysim.algorithms.Peer, got 'json:JSONDecoder', which is <class 'json.decoder.JSON",
        ),
        ("raysim.algorithms:Central", "must name a class that defines step, trigger, weigh, got 'raysim.algorithms:"),
        ("raysim.algorithms:DPSGD", "must name a class whose field is `name: str`, got 'raysim.algorithms:DPSGD'"),
        (
            {"name": "toys:Buffered", "siz": 1},
            "algorithm.siz: unknown key (did you mean 'size'?); known here: name, size",
        ),
        ({"name": "toys:Buffered", "size": 0.5}, "algorithm.size: must be an integer, got 0.5"),
    ],
)
def test_a_class_that_cannot_be_an_algorithm_is_a_clear_error(
    algorithm: Any, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    assert expected in problem(digits(algorithm=algorithm))
