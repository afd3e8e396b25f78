"""Damaged files of runs: each is told by name."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import command
from compared_runs import FEDAVG, made
from conftest import Simulate, digits
from table_rows import NEVER, update

import raysim
from results import NotARun, Run, Writer, load, write_json
from results.rows import UpdateRow

CURE = "copy it again from where it is whole, or run the scenario again"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed, end in enumerate([0.5, 0.6, 0.7]):
        made(tmp_path / "runs" / f"r{seed}", {"seed": seed, **FEDAVG}, [0.1, end])
    return tmp_path / "runs"


def parquet(run: Path, table: str) -> Path:
    (file,) = (run / table).glob("*.parquet")
    return file


def test_every_bit_of_a_table_is_checked(tmp_path: Path) -> None:
    """A flipped bit of a page is found by its checksum, also where the page could still be read; one in the file's
    description does not rename a column, whose values would be null then."""
    writer = Writer(tmp_path, "r", flush_seconds=NEVER)
    for dispatch in range(100):
        writer.add(UpdateRow(**update(dispatch)))
    writer.close()
    write_json(tmp_path, {"run": "r", "status": "finished"})
    file = parquet(tmp_path, "updates")
    content, whole = file.read_bytes(), Run(tmp_path).table("updates")
    rng = np.random.default_rng(0)
    name = content.rindex(b"staleness")
    for place in (*rng.integers(4, len(content), 400), *range(name, name + 9)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:  # a bit of a page's header may be one that nobody needs
            assert Run(tmp_path).table("updates").equals(whole)
        except NotARun as error:
            assert str(error).startswith((f"{file}: must be a whole Parquet file, got ", f"{file}: must have this"))


def test_a_damaged_second_part_is_told_by_its_name(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "r", flush_seconds=NEVER)
    for dispatch in range(3):
        writer.add(UpdateRow(**update(dispatch)))
        writer.flush()
    write_json(tmp_path, {"run": "r", "status": "running"})
    second = tmp_path / "updates" / "000001.parquet"
    second.write_bytes(second.read_bytes()[:-100])
    for read in (raysim.Result(tmp_path).table, load(tmp_path).table):
        with pytest.raises(NotARun, match=rf"^{re.escape(str(second))}: must be a whole Parquet file, got .*{CURE}"):
            read("updates")
    answer = command("show", tmp_path)
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
    assert answer.stderr.startswith(f"{second}: must be a whole Parquet file")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1]", "[" * 100_000, '{"run": "r1", "scenario": 3}', "\x00\xff"],
    ids=["empty", "cut off", "a list", "too deep", "no scenario", "no text"],
)
def test_a_run_whose_run_json_is_damaged_is_told(runs: Path, content: str) -> None:
    (runs / "r1" / "run.json").write_bytes(content.encode("latin-1"))
    answer = command("compare", runs)
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"{runs / 'r1' / 'run.json'}: ") and len(answer.stderr) < 500
    with pytest.raises(NotARun, match=r"r1/run\.json: "):
        load(runs)
    alone = command("compare", runs / "r1")
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert f"{CURE}\n" in alone.stderr


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("classes", 7, "must give a model of 1210 parameters, as the run left it, got one of 1159"),
        ("input_shape", None, "must have input_shape, with which the model is built, got none"),
    ],
)
def test_what_run_json_says_of_the_model_belongs_to_it(key: str, value: Any, told: str, simulate: Simulate) -> None:
    folder = simulate(digits(run__rounds=1)).folder
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {key: value}))
    with pytest.raises(NotARun, match=told):
        raysim.Result(folder).module()


def test_models_that_are_damaged_are_told_by_their_file(tmp_path: Path) -> None:
    made(tmp_path / "r", FEDAVG, [0.5])
    (tmp_path / "r" / "model.safetensors").write_bytes(b"\x08\x00")
    for make in (lambda file: None, lambda file: (file.unlink(), file.mkdir())):
        make(tmp_path / "r" / "model.safetensors")
        with pytest.raises(NotARun, match=r"model\.safetensors: must be a whole file of tensors, got"):
            raysim.Result(tmp_path / "r").vectors()
