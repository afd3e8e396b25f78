"""Reading a run's tables, and what is no run."""

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from table_rows import ROWS, update, written

from results import TABLES, NotARun, Run, Writer, open_run, write_json
from results.tables import part_files


def test_columns_filter_and_pandas(tmp_path: Path) -> None:
    """A table can be read in part, and as a data frame whose texts are categories."""
    written(tmp_path, [update(k) for k in range(10)], flush_after=(4,)).close()
    write_json(tmp_path, {})
    run = Run(tmp_path)
    late = run.table("updates", ["client", "dispatch"], pc.field("dispatch") >= 8)
    assert late.to_pydict() == {"client": [3, 4], "dispatch": [8, 9]}
    frame = run.pandas("updates")
    assert frame["status"].dtype == "category"
    assert frame["dispatch"].tolist() == list(range(10))


def test_a_table_without_rows_is_empty_and_typed(tmp_path: Path) -> None:
    Writer(tmp_path, "r").close()
    write_json(tmp_path, {})
    for name, schema in TABLES.items():
        table = Run(tmp_path).table(name)
        assert table.num_rows == 0
        assert table.schema.equals(schema)


def test_tables_of_another_schema_are_refused_with_a_reason(tmp_path: Path) -> None:
    written(tmp_path, ROWS).close()
    write_json(tmp_path, {"run": "r"})
    (file,) = part_files(tmp_path, "updates")
    table = pq.read_table(file)
    older = table.drop_columns("worker").append_column("host", table["client"])
    older = older.set_column(4, "client", table["client"].cast("int64"))
    pq.write_table(older, file)
    with pytest.raises(NotARun, match="but differs in host, worker; read it with"):
        open_run(tmp_path)


def test_unknown_tables_and_columns_are_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"table: must be one of .*, got 'update'"):
        Run(tmp_path).table("update")
    with pytest.raises(ValueError, match=r"steps: columns must be of run, .*, got \['time'\]"):
        Run(tmp_path).table("steps", ["time"])
