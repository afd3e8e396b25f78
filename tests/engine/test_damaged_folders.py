"""Whatever is damaged in a run's folder, no command ends in a traceback."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import digits
from damages import damage
from stopping import stop_after
from typer.testing import CliRunner

import raysim
from raysim.cli.app import app
from raysim.parts.errors import DamagedCheckpoint, RaysimError
from results import CannotWrite, NotARun

TOLD = (SystemExit, RaysimError, NotARun, CannotWrite)  # each is told in one line


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that can go on."""
    raw = digits(run__rounds=3, run__evaluate_every=1, algorithm={"name": "fedbuff", "buffer": 3})
    return raysim.run(raw, inline=True, out=tmp_path_factory.mktemp("early"), observers=[stop_after(2)]).folder


@pytest.mark.parametrize("seed", range(24))
def test_no_damage_ends_in_a_traceback(seed: int, early: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(early, tmp_path / early.name))
    what = damage(folder, random.Random(seed))
    for words in (("show",), ("compare", "--unfinished"), ("resume", "--inline")):
        answer = CliRunner().invoke(app, [words[0], str(folder), *words[1:]])
        assert answer.exception is None or isinstance(answer.exception, TOLD), f"{what}: {words[0]}"
        assert "Traceback" not in answer.output, f"{what}: {words[0]}"


def _no_table(folder: Path) -> None:
    next(folder.glob("steps/*.parquet")).write_text("no table")


def _info(key: str, value: Any) -> Any:
    def change(folder: Path) -> None:
        info = json.loads((folder / "run.json").read_text())
        info[key] = value
        (folder / "run.json").write_text(json.dumps(info))

    return change


DAMAGES: dict[str, Any] = {
    "steps/000000.parquet: must be a whole Parquet file": _no_table,
    "run.json: machines: must be a list, got 'x'": _info("machines", "x"),
    "run.json: seed: must be an integer, got 'x'": _info("seed", "x"),
    "run.json: git: must be a block of keys, got 1": _info("git", 1),
}


@pytest.mark.parametrize("told", DAMAGES)
def test_what_is_damaged_is_told_by_every_command_and_stays_as_it_is(told: str, early: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(early, tmp_path / "runs" / early.name))
    DAMAGES[told](folder)
    before = {file: (file.lstat().st_mtime_ns, file.lstat().st_size) for file in folder.rglob("*")}
    commands = (
        ["show", folder],
        ["ls", folder.parent],
        ["compare", folder, "--unfinished"],
        ["report", folder, "--out", tmp_path / "report.html"],
        ["resume", folder, "--inline"],
    )
    for words in (*commands, ["fork", folder, "--at", 1, "--inline", "--out", tmp_path / "forks"]):
        answer = CliRunner().invoke(app, [str(word) for word in words])
        reached = answer.exit_code == 0 and words[0] == "compare"  # which needs no table of steps
        assert reached or told in f"{answer.output}{answer.exception}", words
        assert reached or answer.exception is None or isinstance(answer.exception, TOLD), words
        assert before == {file: (file.lstat().st_mtime_ns, file.lstat().st_size) for file in folder.rglob("*")}


def test_a_checkpoint_of_a_stranger_that_names_other_files_is_told(early: Path, tmp_path: Path) -> None:
    """It could name a device, or a secret to look for."""
    folder = Path(shutil.copytree(early, tmp_path / early.name))
    file = folder / "checkpoint" / "checkpoint.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"digests": {"../../../../dev/zero": "0"}}))
    with pytest.raises(DamagedCheckpoint, match="which is not a file that raysim writes there"):
        raysim.resume(folder, inline=True)


def test_a_run_does_not_go_on_in_a_folder_that_cannot_be_written(
    early: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(early, tmp_path / early.name))
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != folder or mode == os.R_OK)  # root may write all
    answer = CliRunner().invoke(app, ["resume", str(folder), "--inline"])
    assert isinstance(answer.exception, CannotWrite) and "you may not write to" in str(answer.exception)
    assert answer.output == ""
