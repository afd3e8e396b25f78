"""Whatever is damaged in a run's folder, no command ends in a traceback."""

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import digits
from typer.testing import CliRunner

import raysim
from raysim.cli.app import app
from raysim.parts.errors import RaysimError, StopRun
from results import CannotWrite, NotARun

VALUES: list[Any] = [None, True, -1, 1.5, "text", [], [1], {}, {"a": 1}]
TOLD = (SystemExit, RaysimError, NotARun, CannotWrite)  # each is told in one line


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that can go on."""

    def watch(progress: Any) -> None:
        if progress.round >= 2:
            raise StopRun("enough")

    raw = digits(run__rounds=3, run__evaluate_every=1, algorithm={"name": "fedbuff", "buffer": 3})
    return raysim.run(raw, inline=True, out=tmp_path_factory.mktemp("early"), observers=[watch]).folder


def damage(folder: Path, draws: random.Random) -> str:
    """Damages one file, and says how."""
    file = draws.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    how = draws.choice(["cut", "flip", "delete", "folder", *["value"] * 4])
    content = bytearray(file.read_bytes())
    if how == "value" and file.suffix == ".json":
        info = json.loads(content)
        key = draws.choice(sorted(info))
        info[key] = draws.choice(VALUES)
        if file.name == "checkpoint.json":  # as if it had been written so
            info.pop("sha256", None)
            info["sha256"] = hashlib.sha256(json.dumps(info).encode()).hexdigest()
        file.write_text(json.dumps(info))
        return f"{file.name}: {key} = {info.get(key)!r}"
    if how in ("flip", "value") and content:
        content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
        file.write_bytes(content)
    elif how == "cut":
        file.write_bytes(content[: draws.randrange(len(content) + 1)])
    else:
        file.unlink()
        if how == "folder":
            file.mkdir()
    return f"{file.relative_to(folder)}: {how}"


@pytest.mark.parametrize("seed", range(24))
def test_no_damage_ends_in_a_traceback(seed: int, early: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(early, tmp_path / early.name))
    what = damage(folder, random.Random(seed))
    for words in (("show",), ("compare", "--unfinished"), ("resume", "--inline")):
        answer = CliRunner().invoke(app, [words[0], str(folder), *words[1:]])
        assert answer.exception is None or isinstance(answer.exception, TOLD), f"{what}: {words[0]}"
        assert "Traceback" not in answer.output, f"{what}: {words[0]}"
