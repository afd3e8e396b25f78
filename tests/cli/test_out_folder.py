"""Folders for results that cannot be made: nothing starts, and the message says why."""

import os
from pathlib import Path

import pytest
from command_line import QUICKSTART, command
from conftest import digits

import raysim
from results.disk import CannotWrite, require_folder


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("file", "is not a folder"),
        ("file/below", "file is not a folder"),
        ("x" * 300, "File name too long"),
        ("/dev/null", "/dev/null is not a folder"),
        ("/".join(["x" * 200] * 30), "File name too long"),
    ],
)
def test_a_folder_that_cannot_be_made_is_refused_before_anything_starts(tmp_path: Path, out: str, why: str) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / out
    for words in (["run", QUICKSTART, "--inline"], ["run", QUICKSTART], ["sweep", QUICKSTART, "--inline"]):
        answer = command(*words, "--out", place)
        assert answer.exit_code == 2
        assert "take a folder that you may write to" in " ".join(answer.stderr.replace("│", " ").split())
    with pytest.raises(CannotWrite, match="take a folder that you may write to") as told:
        raysim.run(raysim.parse_scenario(digits()), out=place, inline=True)
    assert why in str(told.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_folder_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who runs the tests may write everywhere, so the answer of the system is made up."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(CannotWrite, match=rf"\(you may not write to {tmp_path}, .* were free\); take a folder"):
        require_folder(tmp_path / "a" / "b")
