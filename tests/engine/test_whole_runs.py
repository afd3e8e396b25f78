"""Who writes a run, and whether all of it is there: what is missing or changed is told."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from conftest import PYTHONPATH, Raw, digits, forget
from stopping import stop_after

import raysim
from raysim.parts.errors import RunFailed
from raysim.runs.continuing import EarlierRuns, OutOfDate
from results import NotARun, load

RAW = digits(run__rounds=4, run__evaluate_every=2, run__save_clients=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return raysim.run(RAW, inline=True, out=tmp_path_factory.mktemp("whole")).folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / whole.name))


def early(raw: Raw, out: Path, after: int) -> Path:
    return raysim.run(raw, inline=True, out=out, observers=[stop_after(after)]).folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("table", ["updates", "steps", "tasks"])
def test_rows_that_are_missing_are_told_with_what_to_do(table: str, run: Path) -> None:
    rows = json.loads((run / "run.json").read_text())["rows"][table]
    shutil.rmtree(run / table)
    text = f"{run / table}: must hold the {rows} rows that run.json counts, got 0; copy it again"
    shown = command("show", run)
    assert (shown.exit_code, shown.stdout) == (2, "") and text in shown.stderr
    for read in (raysim.Result(run).table, load(run).table):
        with pytest.raises(NotARun, match=r"rows that run\.json counts, got 0"):
            read(table)


@pytest.mark.parametrize("name", ["model", "clients"])
def test_a_model_that_has_changed_is_told(name: str, run: Path) -> None:
    file = run / f"{name}.safetensors"
    changed = bytearray(file.read_bytes())
    changed[-1] ^= 1
    file.write_bytes(changed)
    result = raysim.Result(run)
    with pytest.raises(NotARun, match=rf"{name}.safetensors: must be as the run wrote it, with the digest"):
        result.vectors() if name == "model" else result.clients()


def test_every_change_of_code_is_noted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = tmp_path / "edited_between_resumes.py"
    monkeypatch.syspath_prepend(tmp_path)
    source = "from raysim.algorithms import FedBuff\nclass Mine(FedBuff):\n    name: str = 'mine'\n"
    module.write_text(source)
    raw = digits(algorithm={"name": "edited_between_resumes:Mine", "buffer": 3})
    folder = early(raw, tmp_path / "runs", 2)
    for edit in range(2):
        caplog.clear()
        module.write_text(f"{source}# {edit}\n")
        forget(module.stem)
        raysim.resume(folder, inline=True, observers=[stop_after(4 + 2 * edit)])
        notes = json.loads((folder / "run.json").read_text())["notes"]
        changes = [note for note in notes if "after a change: module edited_between_resumes changed" in note]
        assert len(changes) == edit + 1 and changes[-1] in caplog.text and caplog.text.count("after a change") == 1
        shown = " ".join(command("show", folder).stdout.split())
        assert shown.count("after a change: module edited_between_resumes changed") == edit + 1
    raysim.resume(folder, inline=True)
    found = EarlierRuns(tmp_path / "runs").find(raysim.parse_scenario(raw))
    assert isinstance(found, OutOfDate) and found.why.count("it continued from version") == 2


SOURCE = """from importlib import import_module
from raysim.algorithms import FedBuff
import {stem}_apart
other = import_module("{stem}_called")
class Mine(FedBuff):
    name: str = "mine"
"""


@pytest.fixture
def with_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """A run that ended early, and the folder of its own modules. One that these import is in another folder."""
    stem = f"kept_{abs(hash(request.node.name))}"
    here, apart = tmp_path / "here", tmp_path / "apart"
    for folder, name, text in ((here, "", SOURCE.format(stem=stem)), (here, "_called", "X = 1"), (apart, "_apart", "")):
        folder.mkdir(exist_ok=True)
        (folder / f"{stem}{name}.py").write_text(text)
        monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(here)
    return early(digits(algorithm={"name": f"{stem}:Mine", "buffer": 3}), tmp_path / "runs", 2), here


def write_info(folder: Path, **blocks: Any) -> None:
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, **blocks}))


CHANGES: dict[str, Any] = {
    r"module \w+ changed$": lambda run, here: next(here.glob("*_called.py")).write_text("X = 2"),
    r"module (?#apart)\w+ changed$": lambda run, here: next(here.parent.glob("apart/*.py")).write_text("X = 2"),
    r"torch 1\.0 -> 2": lambda run, here: write_info(run, versions={"torch": "1.0"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_kind_of_change_is_noted_by_runs_that_go_on_begin_again_or_fork(
    change: str, with_code: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    run, here = with_code
    CHANGES[change](run, here)
    forget("kept_")
    other = Path(shutil.copytree(run, run.with_name("other")))
    shutil.rmtree(other / "checkpoint")
    version = json.loads((run / "checkpoint" / "checkpoint.json").read_text())["version"]
    forks = [raysim.fork(run, at, inline=True, out=here / "forks") for at in (1, version + 1)]
    ended = [raysim.resume(run, inline=True), raysim.resume(other, inline=True), *forks]
    went_on = f"continued from version {version}"
    done = [went_on, "began again", "did the past of the other run again", went_on]
    for result, what in zip(ended, done, strict=True):
        assert re.search(f"^{what} after a change: {change}", "\n".join(result.info["notes"]), re.MULTILINE)
        assert f"{result.folder.name}: {what} after a change: " in caplog.text
    assert ended[0].info["depends_on"]["mixed"]


@pytest.mark.slow
def test_what_a_script_uses_counts_as_its_code(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def share(): return 1.0\n")
    (tmp_path / "unused.py").write_text("")
    script = tmp_path / "script.py"
    script.write_text(
        "import raysim, json, unused\nfrom beside import share\nfrom raysim.algorithms import FedBuff\n"
        "class Mine(FedBuff):\n    name: str = 'mine'\n    def weigh(self, arrivals, population):\n"
        f"        return [share()] * len(arrivals)\nraw = json.loads({json.dumps(json.dumps(RAW))})\n"
        "raw['algorithm'] = Mine(buffer=3)\nprint(raysim.run(raw, inline=True, progress=False).folder)\n"
    )
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    line = [sys.executable, str(script)]
    answer = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=environment, check=True)
    assert {file.name for file in Path(answer.stdout.strip(), "code").iterdir()} == {"__main__.py", "beside.py"}


def test_a_part_whose_checksum_fails_keeps_a_run_from_going_on_before_anything_changes(tmp_path: Path) -> None:
    folder = early(RAW, tmp_path, 2)
    (part,) = (folder / "tasks").iterdir()
    damaged = bytearray(part.read_bytes())
    damaged[40] ^= 0xFF
    part.write_bytes(damaged)
    before = content(folder)
    with pytest.raises(RunFailed, match=rf"^checkpoint: {part}: must be a whole Parquet file") as failed:
        raysim.resume(folder, inline=True)
    assert failed.value.traceback == ""
    assert content(folder) == before
