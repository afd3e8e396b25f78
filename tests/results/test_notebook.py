"""What notebooks show of results, runs, comparisons and scenarios."""

from html.parser import HTMLParser
from pathlib import Path

from compared_runs import made
from conftest import digits
from reported_runs import evaluation
from reported_runs import made as reported

import raysim
from results import load


class Cells(HTMLParser):
    """The texts of all cells of all tables, and whether all tags are closed in the order in which they were opened."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag in ("td", "th"):
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th", "b") and self.texts:
            self.texts[-1] += data


def cells(shown: object) -> list[str]:
    found = Cells(shown._repr_html_())  # type: ignore[attr-defined]
    assert not found.open
    return found.texts


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
    assert "algorithm: {name: fedbuff}" in shown and "wait_s" not in shown
    assert not Cells(shown).open
