"""The digest of a run's tables: equal for equal rows, however they were written."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from table_rows import ROWS as UPDATES
from table_rows import update, written

from results import TABLES, Writer
from results.columns import described, is_marked
from results.schemas import ROWS


def test_the_digest_does_not_depend_on_flushes_run_or_wall_columns(tmp_path: Path) -> None:
    digest = written(tmp_path / "a", UPDATES).digest()
    assert len(digest) == 64
    assert written(tmp_path / "b", UPDATES, flush_after=(0, 1, 7)).digest() == digest
    closed = written(tmp_path / "c", UPDATES, flush_after=(3,))
    closed.close()
    assert closed.digest() == digest
    other = [row | {"seconds": 9.9, "worker": None} for row in UPDATES]
    assert written(tmp_path / "d", other, run="another").digest() == digest
    as_numpy = [row | {"client": np.int32(row["client"]), "staleness": 1} for row in UPDATES]
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
    assert written(tmp_path / "a", UPDATES).digest() != written(tmp_path / "b", UPDATES[::-1]).digest()
    (odd,) = np.array([0x7FF8000000000001], np.int64).view(np.float64).tolist()  # another NaN than math.nan
    nan, other, null = ([update(0, weight=value)] for value in (math.nan, odd, None))
    digest = written(tmp_path / "c", nan).digest()
    assert written(tmp_path / "d", other).digest() == digest
    assert written(tmp_path / "e", null).digest() != digest


@pytest.mark.parametrize("table", TABLES)
def test_the_digest_tells_every_column_of_every_table_but_the_run_wall_and_estimated_columns(
    tmp_path: Path, table: str
) -> None:
    plain = {"text": "a", "integer": 1, "number": 1.0}
    other = {"text": "b", "integer": 2, "number": 2.0}
    columns = [described(column) for column in TABLES[table] if column.name != "run"]
    row = {column.name: plain[column.type] for column in columns}

    def digest(name: str, **changes: Any) -> str:
        writer = Writer(tmp_path / name, "r")
        writer.add(ROWS[table](**row | changes))
        return writer.digest()

    same = digest("same")
    told = {column.name for column in columns if digest(column.name, **{column.name: other[column.type]}) != same}
    derived = {column.name for column in TABLES[table] if is_marked(column, "derived")}
    assert told == {column.name for column in columns if not (column.wall or column.estimated)} - derived
