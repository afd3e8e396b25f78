"""The tables of a run: what is written can be read, is never lost or doubled, and has a digest of its own."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from results import TABLES, NotARun, Run, Writer, is_wall, open_run, summary, write_json
from results.parts import part_files
from results.schemas import columns_of, description_of
from results.show import render

NEVER = 1e9  # seconds between flushes


def update(dispatch: Any, **changes: Any) -> dict[str, Any]:
    row = {
        "step": dispatch // 2,
        "round": dispatch // 2,
        "virtual_time": dispatch / 3,
        "client": dispatch % 5,
        "dispatch": dispatch,
        "status": "used",
        "dispatched_at": dispatch / 4,
        "arrived_at": dispatch / 3,
        "version": 0,
        "staleness": 1.0,
        "weight": 0.5,
        "samples": 10,
        "local_steps": 3,
        "seconds": 0.01,
        "worker": "client-0",
    }
    return row | changes


def step(number: int, **changes: Any) -> dict[str, Any]:
    row = {
        "step": number,
        "round": number,
        "virtual_time": float(number),
        "used": 2,
        "discarded": 0,
        "in_flight": 3,
        "staleness_mean": 1.0,
        "staleness_max": 2.0,
        "up_bytes": 100,
        "down_bytes": 200,
        "samples": 20,
        "seconds": 0.5,
        "elapsed_s": 0.6 * number,
    }
    return row | changes


def evaluation(number: int, subject: str, member: int | None, metric: str, value: float) -> dict[str, Any]:
    when = {"step": number, "round": number, "virtual_time": float(number)}
    what = {"subject": subject, "member": member, "split": "test", "metric": metric, "value": value, "samples": 10}
    return when | what


def written(folder: Path, rows: list[dict[str, Any]], flush_after: tuple[int, ...] = (), run: str = "r") -> Writer:
    """A writer that was given update rows, and flushed after those places."""
    writer = Writer(folder, run, flush_seconds=NEVER)
    for place, row in enumerate(rows):
        writer.add("updates", row)
        if place in flush_after:
            writer.flush()
    return writer


def dispatches(folder: Path) -> list[int]:
    return [int(number) for number in Run(folder).table("updates", ["dispatch"])["dispatch"].to_numpy()]


def test_every_table_has_the_common_columns_and_descriptions() -> None:
    """A row says which run it is of and, but for the partition, when it counted; every column says what it is."""
    for name, schema in TABLES.items():
        common = ["run"] if name == "partition" else ["run", "step", "round", "virtual_time"]
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
    table = Run(tmp_path).table("updates")
    assert table.schema.equals(TABLES["updates"])
    assert table["run"].to_pylist() == ["r"] * 3
    assert table["dispatch"].to_pylist() == [0, 1, 2]
    assert table["weight"].to_pylist() == [0.5, None, 0.5]
    assert table["staleness"].to_pylist() == [1.0, 1.0, 0.5]
    assert table["loss_after"].null_count == 3
    assert repr(table["loss_before"].to_pylist()) == "[nan, None, None]"


def test_columns_filter_and_pandas(tmp_path: Path) -> None:
    """A table can be read in part, and as a data frame whose texts are categories."""
    written(tmp_path, [update(k) for k in range(10)], flush_after=(4,)).close()
    run = Run(tmp_path)
    late = run.table("updates", ["client", "dispatch"], pc.field("dispatch") >= 8)
    assert late.to_pydict() == {"client": [3, 4], "dispatch": [8, 9]}
    frame = run.pandas("updates")
    assert frame["status"].dtype == "category"
    assert frame["dispatch"].tolist() == list(range(10))


def test_a_table_without_rows_is_empty_and_typed(tmp_path: Path) -> None:
    Writer(tmp_path, "r").close()
    for name, schema in TABLES.items():
        table = Run(tmp_path).table(name)
        assert table.num_rows == 0
        assert table.schema.equals(schema)


def test_flushes_by_itself_when_time_has_passed(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "r", flush_seconds=0.0)
    writer.add("updates", update(0))
    assert dispatches(tmp_path) == [0]


def test_flushes_by_itself_when_a_buffer_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("results.writer._BUFFER_ROWS", 3)
    written(tmp_path, [update(k) for k in range(7)])
    assert dispatches(tmp_path) == list(range(6))


def test_a_killed_run_is_readable_by_everybody(tmp_path: Path) -> None:
    """What was flushed before a kill is there for Arrow, pandas and DuckDB, beside a part that was half written."""
    code = """
import json, os, sys
from results import Writer
writer = Writer(sys.argv[1], "r", flush_seconds=1e9)
for place, row in enumerate(json.loads(sys.argv[2])):
    writer.add("updates", row)
    if place in (2, 5):
        writer.flush()
os._exit(9)
"""
    rows = json.dumps([update(k) for k in range(9)])
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), rows], cwd=Path(__file__).parents[1])
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


def test_close_leaves_one_file_a_table(tmp_path: Path) -> None:
    writer = written(tmp_path, [update(k) for k in range(9)], flush_after=(2, 5))
    writer.close()
    writer.close()
    assert len(part_files(tmp_path, "updates")) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["updates"]
    assert dispatches(tmp_path) == list(range(9))


def test_compaction_in_several_groups_keeps_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("results.parts._GROUP_ROWS", 4)
    rows = [update(k, status=("used", "dropped", "discarded")[k // 4]) for k in range(11)]
    written(tmp_path, rows, flush_after=(2, 5, 6, 9)).close()
    assert pq.ParquetFile(part_files(tmp_path, "updates")[0]).num_row_groups > 1
    assert dispatches(tmp_path) == list(range(11))
    assert Run(tmp_path).table("updates")["status"].to_pylist() == [row["status"] for row in rows]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("call", ["write", "rename the old", "rename the new", "remove", "remove half"])
def test_a_kill_in_a_compaction_neither_loses_nor_doubles_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Wherever compaction stops, every row is read once; no folder ever shows a row twice to who lists its files."""
    writer = written(tmp_path, [update(k) for k in range(9)], flush_after=(2, 5))
    writer.flush()
    rename = os.rename

    def killed_rename(source: Path, target: Path) -> None:
        if (Path(source).name == "updates") == (call == "rename the old"):
            raise Killed
        rename(source, target)

    def killed_remove(folder: Path) -> None:
        if call == "remove half":
            next(iter(folder.iterdir())).unlink()
        raise Killed

    def killed_write(*args: Any, **keywords: Any) -> None:
        raise Killed

    if call == "write":
        monkeypatch.setattr(pq.ParquetWriter, "write_table", killed_write)
    elif call.startswith("rename"):
        monkeypatch.setattr("results.parts.os.rename", killed_rename)
    else:
        monkeypatch.setattr("results.parts.shutil.rmtree", killed_remove)
    with pytest.raises(Killed):
        writer.close()
    monkeypatch.undo()
    assert dispatches(tmp_path) == list(range(9))
    folder = tmp_path / "updates"
    assert folder.exists() == (call != "rename the new")
    if folder.exists():
        assert ds.dataset(folder).to_table()["dispatch"].to_pylist() == list(range(9))


def test_a_reader_survives_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listed the parts before the writer closed reads the rows all the same."""
    writer = written(tmp_path, [update(k) for k in range(9)], flush_after=(2, 5))
    writer.flush()
    stale = iter([part_files(tmp_path, "updates")])
    writer.close()
    monkeypatch.setattr("results.reader.part_files", lambda *where: next(stale, None) or part_files(*where))
    assert dispatches(tmp_path) == list(range(9))


ROWS = [update(k, loss_before=(None, 0.0, math.nan)[k % 3], up_bytes=(None, 0)[k % 2]) for k in range(12)]


def test_the_digest_does_not_depend_on_flushes_run_or_wall_columns(tmp_path: Path) -> None:
    digest = written(tmp_path / "a", ROWS).digest()
    assert len(digest) == 64
    assert written(tmp_path / "b", ROWS, flush_after=(0, 1, 7)).digest() == digest
    closed = written(tmp_path / "c", ROWS, flush_after=(3,))
    closed.close()
    assert closed.digest() == digest
    other = [row | {"seconds": 9.9, "worker": None} for row in ROWS]
    assert written(tmp_path / "d", other, run="another").digest() == digest
    as_numpy = [row | {"client": np.int32(row["client"]), "staleness": 1} for row in ROWS]
    assert written(tmp_path / "e", as_numpy).digest() == digest


@pytest.mark.parametrize(
    "change",
    [
        {"client": 4},
        {"virtual_time": math.nextafter(1.0, 2.0)},
        {"weight": -0.0},
        {"weight": None},
        {"weight": math.nan},
        {"up_bytes": 0},
        {"status": "dropped"},
    ],
)
def test_the_digest_tells_every_value(tmp_path: Path, change: dict[str, Any]) -> None:
    """One changed bit counts; null, zero, minus zero and NaN are four values."""
    rows = [update(k, weight=0.0, virtual_time=1.0) for k in range(3)]
    changed = [rows[0], rows[1] | change, rows[2]]
    assert written(tmp_path / "a", rows).digest() != written(tmp_path / "b", changed).digest()


def test_the_digest_tells_the_order_of_rows_and_all_nans_are_alike(tmp_path: Path) -> None:
    assert written(tmp_path / "a", ROWS).digest() != written(tmp_path / "b", ROWS[::-1]).digest()
    (odd,) = np.array([0x7FF8000000000001], np.int64).view(np.float64).tolist()  # another NaN than math.nan
    nan, other, null = ([update(0, weight=value)] for value in (math.nan, odd, None))
    digest = written(tmp_path / "c", nan).digest()
    assert written(tmp_path / "d", other).digest() == digest
    assert written(tmp_path / "e", null).digest() != digest


def test_rows_that_do_not_fit_are_refused_with_a_reason(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "r", flush_seconds=NEVER)
    with pytest.raises(ValueError, match=r"table: must be one of steps, .*, got 'step'"):
        writer.add("step", {})
    with pytest.raises(ValueError, match=r"updates: .* got unknown loss; the columns are step,"):
        writer.add("updates", update(0, loss=1.0))
    row = update(0)
    del row["client"]
    with pytest.raises(ValueError, match=r"updates: .* got missing client;"):
        writer.add("updates", row)


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


def test_what_is_no_run_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match=r"must hold run\.json, which cannot be read \(No such file"):
        open_run(tmp_path / "missing")
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(NotARun, match="must be JSON, got Expecting"):
        open_run(tmp_path)
    (tmp_path / "run.json").write_text("[1]")
    with pytest.raises(NotARun, match=r"must hold a JSON object, got \[1\]"):
        open_run(tmp_path)


def test_tables_of_another_schema_are_refused_with_a_reason(tmp_path: Path) -> None:
    written(tmp_path, ROWS).close()
    write_json(tmp_path, {"run": "r"})
    (file,) = part_files(tmp_path, "updates")
    table = pq.read_table(file)
    older = table.drop_columns("worker").append_column("host", table["client"])
    older = older.set_column(4, "client", table["client"].cast("int64"))
    pq.write_table(older, file)
    with pytest.raises(NotARun, match="lacks worker, has also host, has of another type client; read it with"):
        open_run(tmp_path)
    file.write_bytes(b"PAR1")
    with pytest.raises(NotARun, match=r"\.parquet: must be a Parquet file, got"):
        open_run(tmp_path)


def test_unknown_tables_and_columns_are_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"table: must be one of .*, got 'update'"):
        Run(tmp_path).table("update")
    with pytest.raises(ValueError, match=r"steps: columns must be of run, .*, got \['time'\]"):
        Run(tmp_path).table("steps", ["time"])


INFO = {
    "run": "r-1",
    "name": "hand-made",
    "status": "finished",
    "scenario": {
        "algorithm": {"name": "fedbuff"},
        "data": {"name": "digits", "clients": 7},
        "model": {"name": "mlp"},
        "world": {"delay": {"name": "half_normal", "unit": "rounds"}},
    },
    "seed": 3,
    "error": None,
    "totals": {"rounds": 4},
    "seconds": {"total": 12.5},
    "digest": {"run": "ab" * 32},
}


def hand_made(folder: Path, info: dict[str, Any]) -> Run:
    writer = Writer(folder, "r-1", flush_seconds=NEVER)
    for number in (1, 2):
        writer.add("steps", step(number))
    for number, (status, staleness) in enumerate([("used", 0.0), ("used", 3.0), ("discarded", 9.0), ("dropped", 1.0)]):
        writer.add("updates", update(number, status=status, staleness=staleness))
    for number, accuracy, loss in ((0, 0.1, 2.0), (1, 0.5, 1.0), (2, 0.4, math.nan)):
        writer.add("evaluations", evaluation(number, "global", None, "accuracy", accuracy))
        writer.add("evaluations", evaluation(number, "global", None, "loss", loss))
        writer.add("evaluations", evaluation(number, "global", None, "distance", 3.0 - number))
    for number, values in ((1, (0.75, 0.75)), (2, (0.25, 0.75))):
        for client, value in enumerate(values):
            writer.add("evaluations", evaluation(number, "client", client, "accuracy", value))
    writer.flush()
    write_json(folder, info)
    return open_run(folder)


def test_the_summary_of_a_run_made_by_hand(tmp_path: Path) -> None:
    found = summary(hand_made(tmp_path, INFO))
    assert (found.run, found.name, found.status, found.error) == ("r-1", "hand-made", "finished", None)
    assert (found.algorithm, found.data, found.model, found.seed) == ("fedbuff", "digits", "mlp", 3)
    assert (found.clients, found.rounds, found.steps) == (7, 4, 2)
    assert found.updates == {"used": 2, "discarded": 1, "dropped": 1, "unfinished": 0}
    assert (found.staleness_mean, found.staleness_max) == (1.5, 3.0)
    assert (found.up_bytes, found.down_bytes) == (200, 400)
    assert (found.virtual_time, found.unit, found.wall_s, found.digest) == (2.0, "rounds", 12.5, "ab" * 32)


def test_the_scores_of_a_run_made_by_hand(tmp_path: Path) -> None:
    """The best accuracy is the largest, the best loss the smallest that is a number; members are averaged."""
    scores = {(score.subject, score.metric): score for score in summary(hand_made(tmp_path, INFO)).scores}
    assert list(scores)[-1] == ("client", "accuracy")
    accuracy = scores["global", "accuracy"]
    assert (accuracy.first, accuracy.best, accuracy.best_step, accuracy.last) == (0.1, 0.5, 1, 0.4)
    assert (accuracy.members, accuracy.lowest, accuracy.highest) == (None, None, None)
    loss = scores["global", "loss"]
    assert (loss.first, loss.best, loss.best_step) == (2.0, 1.0, 1)
    assert math.isnan(loss.last)
    distance = scores["global", "distance"]
    assert (distance.first, distance.best, distance.best_step, distance.last) == (3.0, None, None, 1.0)
    clients = scores["client", "accuracy"]
    assert (clients.first, clients.best, clients.best_step, clients.last) == (0.75, 0.75, 1, 0.5)
    assert (clients.members, clients.lowest, clients.highest) == (2, 0.25, 0.75)


def test_the_summary_of_a_run_under_way_takes_what_is_there(tmp_path: Path) -> None:
    found = summary(hand_made(tmp_path / "a", {"run": "r-1", "status": "running"}))
    assert (found.status, found.algorithm, found.clients, found.digest) == ("running", None, None, None)
    assert (found.rounds, found.wall_s) == (2, 1.2)
    write_json(tmp_path / "b", {"status": "running"})
    empty = summary(open_run(tmp_path / "b"))
    assert (empty.run, empty.steps, empty.virtual_time, empty.staleness_mean, empty.scores) == ("b", 0, 0.0, None, ())
    assert (empty.up_bytes, empty.down_bytes) == (None, None)


@pytest.mark.parametrize("info", [INFO, {"status": "failed", "error": "train of client 3 [red] failed"}])
def test_a_summary_fits_eighty_columns(tmp_path: Path, info: dict[str, Any]) -> None:
    """Nothing is cut or taken for markup."""
    console = Console(width=80, record=True, file=(tmp_path / "out").open("w"))
    with console.file:
        console.print(render(summary(hand_made(tmp_path / "run", info))))
    text = console.export_text()
    assert "…" not in text
    assert "2 used, 1 discarded, 1 dropped, 0 unfinished" in text
    assert "2 clients test  accuracy" in text
    assert info["error"] is None or info["error"] in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_run_that_has_been_silent_for_long_was_probably_killed(tmp_path: Path) -> None:
    write_json(tmp_path, {"run": "r", "status": "running"})
    assert Run(tmp_path).standing == "running"
    os.utime(tmp_path / "run.json", (0, 0))
    assert Run(tmp_path).standing == summary(Run(tmp_path)).status == "killed?"
    write_json(tmp_path, {"run": "r", "status": "finished"})
    os.utime(tmp_path / "run.json", (0, 0))
    assert Run(tmp_path).standing == "finished"


@pytest.mark.parametrize("damage", [{"scenario": [1]}, {"seconds": 3}, {"run": 1}, {"status": None}])
def test_what_run_json_holds_is_checked(tmp_path: Path, damage: dict[str, Any]) -> None:
    write_json(tmp_path, {"run": "r", "status": "finished"} | damage)
    with pytest.raises(NotARun, match=f"{next(iter(damage))} must be (text|a block of keys), got"):
        open_run(tmp_path)
