"""Python programs see how runs go on: by bars, in a terminal or a notebook, or by lines elsewhere."""

import io
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import digits

import raysim
from raysim.engine.progress import Progress
from raysim.observers import live

SMALL = digits(run__rounds=3, run__evaluate_every=1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Cell:
    """What IPython is to a program in a notebook: it keeps the HTML of each output that is displayed."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.kernel = self

    def get_ipython(self) -> "Cell":
        return self

    def DisplayHandle(self) -> "Cell":
        return self

    def display(self, data: dict[str, str], raw: bool) -> None:
        self.shown.append(data["text/html"])

    update = display


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    cell = Cell()
    monkeypatch.setitem(sys.modules, "IPython", cell)
    monkeypatch.setitem(sys.modules, "IPython.display", cell)
    monkeypatch.setattr(live, "_EVERY_S", 0.0)
    return cell


def test_a_terminal_shows_a_bar_on_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    raysim.run(SMALL, out=tmp_path, inline=True)
    assert re.search(r"digits\S*\s+\S*3/3.*accuracy", terminal.getvalue())
    assert capsys.readouterr().out == ""
    before = terminal.getvalue()
    raysim.run(SMALL, out=tmp_path, inline=True, progress=False)
    assert terminal.getvalue() == before


@pytest.mark.usefixtures("here")
def test_a_notebook_shows_bars_in_one_output(tmp_path: Path, cell: Cell) -> None:
    raysim.run(SMALL, out=tmp_path, inline=True)
    assert re.search(r"━[╸╺ ]+ 2/3", "".join(cell.shown[:-1]))
    assert re.search(r"^<pre>digits ━{20} 3/3 t=3  accuracy 0\.\d+.*\s</pre>$", cell.shown[-1])
    raysim.run_all([{**SMALL, "seed": seed} for seed in (0, 1)], out=tmp_path, inline=True)
    assert any("seed=1" in shown for shown in cell.shown)
    assert re.search(r"<pre>runs ━{20} 2/2", cell.shown[-1])
    assert "seed=" not in cell.shown[-1]


def test_elsewhere_lines_come_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "time", clock := SimpleNamespace(now=0.0, monotonic=lambda: clock.now))
    raysim.run(SMALL, out=tmp_path, inline=True, observers=[lambda progress: None])
    assert capsys.readouterr() == ("", "")

    def pass_time(progress: Progress) -> None:
        clock.now += 6.0

    raysim.run(SMALL, out=tmp_path, inline=True, observers=[pass_time])
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("digits  round 3 of 3  t=3  accuracy 0.")


@pytest.mark.parametrize("prompt", [False, True])
def test_an_interruption_leaves_what_there_is(prompt: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody at a prompt gets the result; elsewhere, the interruption goes on, and has it."""

    def interrupt(progress: Progress) -> None:
        if progress.round == 2:
            raise KeyboardInterrupt

    def start() -> Any:
        return raysim.run(SMALL, out=tmp_path, inline=True, observers=[interrupt])

    if prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
        result = start()
    else:
        with pytest.raises(KeyboardInterrupt) as stop:
            start()
        assert isinstance(stop.value, raysim.Interrupted)
        result = pickle.loads(pickle.dumps(stop.value)).result
    assert result.info["status"] == "interrupted"
    assert result.pandas("evaluations")["round"].max() == 1
    assert raysim.resume(result.folder, inline=True).info["status"] == "finished"
