"""Writing a run's tables: what is written can be read, and is never lost or doubled."""

import json
import math
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from table_rows import ROWS, dispatches, update, written

from results import TABLES, Run, Writer, is_wall, open_run, write_json
from results.rows import UpdateRow
from results.schemas import columns_of, description_of
from results.tables import part_files


def test_every_table_has_the_common_columns_and_descriptions() -> None:
    """A row says which run it is of and, but for two tables, when it counted; every column says what it is."""
    for name, schema in TABLES.items():
        common = ["run"] if name in ("partition", "privacy") else ["run", "step", "round", "virtual_time"]
        assert schema.names[: len(common)] == common
        assert description_of(name).startswith("One row for each ")
        assert [column.name for column in columns_of(name)] == schema.names
        for column in columns_of(name):
            assert column.description.endswith(".")
            assert ("null" in column.description) >= column.nullable, column  # it says when
    assert [column.name for column in TABLES["updates"] if is_wall(column)] == ["seconds", "worker"]


def test_columns_say_their_type_and_unit() -> None:
    columns = {column.name: column for column in columns_of("updates")}
    assert [columns[name].type for name in ("status", "client", "up_bytes", "weight")] == [
        "text",
        "integer",
        "integer",
        "number",
    ]
    assert [columns[name].unit for name in ("seconds", "up_bytes", "client")] == ["s", "bytes", None]
    assert {column.unit for name in TABLES for column in columns_of(name) if column.name.endswith("bytes")} == {"bytes"}


def test_rows_come_back_as_written(tmp_path: Path) -> None:
    """Values, nulls, NaNs, numpy numbers and the run's id survive, in order, with the schema of the table."""
    rows = [update(0, loss_before=math.nan), update(np.int64(1), weight=None), update(2, staleness=np.float32(0.5))]
    writer = written(tmp_path, rows, flush_after=(0,))
    writer.close()
    write_json(tmp_path, {})
    table = Run(tmp_path).table("updates")
    assert table.schema.equals(TABLES["updates"])
    assert table["run"].to_pylist() == ["r"] * 3
    assert table["dispatch"].to_pylist() == [0, 1, 2]
    assert table["weight"].to_pylist() == [0.5, None, 0.5]
    assert table["staleness"].to_pylist() == [1.0, 1.0, 0.5]
    assert table["loss_after"].null_count == 3
    assert repr(table["loss_before"].to_pylist()) == "[nan, None, None]"


def test_flushes_by_itself_when_time_has_passed(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "r", flush_seconds=0.0)
    writer.add(UpdateRow(**update(0)))
    assert dispatches(tmp_path) == [0]


def test_flushes_by_itself_when_a_buffer_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("results.writer.BUFFER_ROWS", 3)
    written(tmp_path, [update(k) for k in range(7)])
    assert dispatches(tmp_path) == list(range(6))


def test_a_killed_run_is_readable_by_everybody(tmp_path: Path) -> None:
    """What was flushed before a kill is there for Arrow, pandas and DuckDB, beside a part that was half written."""
    code = """
import json, os, sys
from results import Writer
from results.rows import UpdateRow
writer = Writer(sys.argv[1], "r", flush_seconds=1e9)
for place, row in enumerate(json.loads(sys.argv[2])):
    writer.add(UpdateRow(**row))
    if place in (2, 5):
        writer.flush()
os._exit(9)
"""
    rows = json.dumps([update(k) for k in range(9)])
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), rows], cwd=ROOT)
    assert done.returncode == 9
    folder = tmp_path / "updates"
    whole = (folder / "000000.parquet").read_bytes()
    (folder / ".000002.parquet.tmp").write_bytes(whole[: len(whole) // 2])
    want = list(range(6))
    assert dispatches(tmp_path) == want
    assert ds.dataset(folder).to_table()["dispatch"].to_pylist() == want
    assert pd.read_parquet(folder)["dispatch"].tolist() == want
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"select dispatch from read_parquet('{folder}/*.parquet') order by dispatch").fetchall()
    assert [number for (number,) in found] == want


def test_compaction_in_several_groups_keeps_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("results.tables.GROUP_ROWS", 4)
    rows = [update(k, status=("used", "dropped", "discarded")[k // 4]) for k in range(11)]
    written(tmp_path, rows, flush_after=(2, 5, 6, 9)).close()
    assert pq.ParquetFile(part_files(tmp_path, "updates")[0]).num_row_groups > 1
    assert dispatches(tmp_path) == list(range(11))
    assert Run(tmp_path).table("updates", ["status"])["status"].to_pylist() == [row["status"] for row in rows]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("removed", [None, 0, 1, 3])
def test_a_kill_in_a_compaction_neither_loses_nor_doubles_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: int | None
) -> None:
    """Wherever compaction stops, every row is read once; no folder ever shows a row twice to who lists its files.

    removed: how many parts were removed before the kill; None: it came while the merged file was written.
    """
    writer = written(tmp_path, [update(k) for k in range(9)], flush_after=(2, 5))
    writer.flush()

    def killed_remove(files: Iterable[Path]) -> None:
        for file in list(files)[:removed]:
            file.unlink()
        raise Killed

    def killed_write(*args: Any, **keywords: Any) -> None:
        raise Killed

    if removed is None:
        monkeypatch.setattr(pq.ParquetWriter, "write_table", killed_write)
    else:
        monkeypatch.setattr("results.tables._remove", killed_remove)
    with pytest.raises(Killed):
        writer.close()
    monkeypatch.undo()
    assert dispatches(tmp_path) == list(range(9))
    shown = ds.dataset(tmp_path / "updates").to_table()
    assert shown.num_rows == 0 or set(shown["dispatch"].to_pylist()) <= set(range(9))
    assert shown.num_rows == (0 if removed == 3 else len(set(shown["dispatch"].to_pylist())))
    Writer(tmp_path, "r", keep={"updates": 4}).close()
    assert dispatches(tmp_path) == list(range(4))
    assert [path.name[0] for path in (tmp_path / "updates").iterdir()] == ["0"]


def test_a_reader_survives_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listed the parts before the writer closed reads the rows all the same."""
    writer = written(tmp_path, [update(k) for k in range(9)], flush_after=(2, 5))
    writer.flush()
    stale = iter([part_files(tmp_path, "updates")])
    writer.close()
    monkeypatch.setattr("results.reader.part_files", lambda *where: next(stale, None) or part_files(*where))
    assert dispatches(tmp_path) == list(range(9))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"client": None}, r"updates\.client: must not be null, got the row .*'dispatch': 1"),
        ({"client": "x"}, r"updates\.client: must be int32, got a value that is not: .*'x'"),
        ({"client": 1.5}, r"updates\.client: must be int32, got a value that is not: 1\.5"),
        ({"client": 2**40}, r"updates\.client: must be int32, got a value that is not: .*1099511627776"),
        ({"weight": "x"}, r"updates\.weight: must be double, got a value that is not: .*'x'"),
        ({"status": 3}, r"updates\.status: must be text, got a value that is not: .*'int'"),
    ],
)
def test_values_of_the_wrong_type_are_refused_with_a_reason(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    writer = written(tmp_path, [update(0), update(1, **change)])
    with pytest.raises(ValueError, match=text):
        writer.flush()
    assert part_files(tmp_path, "updates") == []


def test_a_folder_is_written_once(tmp_path: Path) -> None:
    written(tmp_path, ROWS).close()
    with pytest.raises(ValueError, match="must hold no rows yet, got updates; write to another folder"):
        Writer(tmp_path, "r")


def test_run_json_is_replaced_whole(tmp_path: Path) -> None:
    """A text that cannot be written leaves the one before, and nothing beside it."""
    write_json(tmp_path, {"run": "r", "status": "running"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path, {"run": "r", "status": math.nan})
    assert open_run(tmp_path).status == "running"
    write_json(tmp_path, {"run": "r", "status": "finished"})
    assert open_run(tmp_path).info == {"run": "r", "status": "finished"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
