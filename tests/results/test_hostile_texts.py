"""Texts of a stranger's run are texts on the pages that show it: no script, no element, no file elsewhere."""

import shutil
from html.parser import HTMLParser
from pathlib import Path

from command_line import command
from reported_runs import evaluation, made, step, when
from test_serve import page as served

from results import load
from results.report import report

OBEYED = "\x1b]0;evil\x07\x1b[2J\u202e"  # what terminals obey
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'--><!-- ${x}& $\\frac$"


class Active(HTMLParser):
    """Collects what a browser would carry out or fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "img", "iframe", "object", "embed") or any(key.startswith("on") for key, _ in attrs):
            self.found.append(tag)


def hostile(folder: Path) -> None:
    for place, status in enumerate(["finished", "failed"]):
        evaluations = [evaluation(k, 0.5, metric=metric) for metric in (EVIL, "../../up") for k in (1, 2)]
        task = {
            "task": EVIL,
            "worker": "<img src=x>",
            "node": "<script>",
            "pid": 1,
            "started_s": 0.0,
            "seconds": 1.0,
        } | when(1)
        rows = {"evaluations": evaluations, "steps": [step(1, 5, 1.0), step(2, 5, 2.0)], "tasks": [task]}
        scenario = {"name": EVIL, "algorithm": {"name": f"{EVIL}{place}", EVIL: place}}
        made(folder / f"r'\"<b onclick=x>{place}", rows, scenario, status=status, error=EVIL, notes=[EVIL])
    (folder / "torn<script>").mkdir()
    (folder / "torn<script>" / "run.json").write_text(f'{{"run": "{EVIL}')


def test_a_report_shows_texts_and_writes_figures_into_its_folder_only(tmp_path: Path) -> None:
    hostile(tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs" / "torn<script>")
    made_of = report(load(tmp_path / "runs"))
    assert {*Active(made_of.html).found} == {"img"} and made_of.html.count("<img ") == len(made_of.pictures)
    (tmp_path / "out").mkdir()
    made_of.write(tmp_path / "out" / "page.html", tmp_path / "out" / "figures")
    assert {path.parent for path in tmp_path.rglob("*.svg")} == {tmp_path / "out" / "figures"}


def test_the_live_page_shows_texts(tmp_path: Path) -> None:
    hostile(tmp_path)
    html = served(tmp_path, "/")
    assert set(Active(html).found) <= {"script"} and "<script>alert" not in html


def test_the_terminal_shows_texts_and_obeys_none(tmp_path: Path) -> None:
    for place in range(2):
        rows = {"evaluations": [evaluation(1, 0.5, metric=f"accuracy{OBEYED}")], "steps": [step(1, 5, 1.0)]}
        scenario = {"name": OBEYED, "algorithm": {"name": f"a{OBEYED}{place}"}}
        made(tmp_path / f"r{place}{OBEYED}", rows, scenario, status="failed", error=OBEYED, notes=[OBEYED])
    (tmp_path / OBEYED).mkdir()
    (tmp_path / OBEYED / "run.json").write_text("{")
    first = sorted(tmp_path.iterdir())[0]
    for words in (
        ["show", first],
        ["ls", tmp_path],
        ["compare", tmp_path, "--unfinished"],
        ["show", tmp_path / OBEYED],
    ):
        shown = command(*words).output
        assert "x1b" in shown and not set(OBEYED) & set(shown) - set("]0;evil[2J")
