"""Python programs see how runs go on: by bars in a terminal, and by lines elsewhere."""

import io
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import digits

import raysim
from raysim.engine.progress import Progress
from raysim.observers import live

SMALL = digits(run__rounds=3, run__evaluate_every=1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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


def test_an_interruption_leaves_what_there_is(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(raysim.Interrupted) as stop:
        raysim.run(SMALL, out=tmp_path, inline=True, observers=[interrupt])
    result = pickle.loads(pickle.dumps(stop.value)).result
    assert result.info["status"] == "interrupted"
    assert result.pandas("evaluations")["round"].max() == 1
    assert raysim.resume(result.folder, inline=True).info["status"] == "finished"
