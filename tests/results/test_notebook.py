"""What notebooks show of results, runs, comparisons and scenarios."""

from pathlib import Path
from xml.etree import ElementTree

from compared_runs import made
from conftest import digits
from reported_runs import evaluation
from reported_runs import made as reported

import raysim
from results import load


def cells(shown: object) -> list[str]:
    """The texts of all cells of all tables, in HTML that closes all tags in the order in which it opens them."""
    html = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")  # type: ignore[attr-defined]
    return ["".join(one.itertext()) for one in html.iter() if one.tag in ("td", "th")]


def test_runs(tmp_path: Path) -> None:
    reported(tmp_path / "a", {"evaluations": [evaluation(0, 0.5)]}, {"run": {"rounds": 2}})
    reported(tmp_path / "b", {}, {"seed": 1, "run": {"rounds": 2}}, status="failed", error="1 < 2")
    assert cells(load(tmp_path))[6:] == [
        *("a", "made, seed=0", "finished", "1/2", "0", "0.5"),
        *("b", "made, seed=1", "failed", "0/2", "0", ""),
    ]
    assert "b: 1 &lt; 2" in load(tmp_path)._repr_html_()
    assert repr(load(tmp_path)) == "Runs(2)"


def test_a_result_and_a_scenario(tmp_path: Path) -> None:
    made(tmp_path / "r", {"algorithm": {"name": "fedavg"}}, [0.1, 0.9])
    texts = cells(raysim.Result(tmp_path / "r"))
    assert texts[texts.index("global") :][:6] == ["global", "test", "accuracy", "0.1", "0.9", "4"]
    shown = raysim.parse_scenario(digits())._repr_html_()
    assert "algorithm: {name: fedbuff}" in shown and "wait_s" not in shown and ElementTree.fromstring(shown) is not None
