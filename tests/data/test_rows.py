"""Files of rows: what their names and keys say of them decides how they are read, or an error says what to add."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_sets import load

from raysim.parts.rng import generator

DRAW = generator(0, "odd files")
Y = DRAW.integers(3, size=60)
X = DRAW.standard_normal((60, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=Y)


def features(path: Path, **keys: Any) -> Any:
    return load(name="table", path=str(path), label="label", **keys)


@pytest.mark.parametrize(
    ("name", "how", "keys"),
    [
        ("semicolons.csv", {"sep": ";"}, {"delimiter": ";"}),
        ("decimal_commas.csv", {"sep": ";", "decimal": ","}, {"delimiter": ";", "decimal": ","}),
        ("tabs.csv", {"sep": "\t"}, {"delimiter": "\t"}),
        ("tabs.tsv", {"sep": "\t"}, {}),
        ("CAPITALS.CSV", {}, {}),
        ("mark.csv", {"encoding": "utf-8-sig"}, {}),
        ("lines.csv", {"lineterminator": "\r\n"}, {}),
    ],
)
def test_a_table_is_read_as_its_name_and_keys_say(tmp_path: Path, name: str, how: Any, keys: Any) -> None:
    FRAME.to_csv(tmp_path / name, index=False, **how)
    dataset = features(tmp_path / name, standardise=False, test_share=0.5, **keys)
    FRAME.to_csv(tmp_path / "plain.csv", index=False)
    plain = features(tmp_path / "plain.csv", standardise=False, test_share=0.5)
    np.testing.assert_array_equal(dataset.train.x, plain.train.x)
    np.testing.assert_array_equal(dataset.train.y, plain.train.y)


@pytest.mark.parametrize(("delimiter", "line"), [(";", '";"'), ("\t", r'"\t"'), ("|", '"|"')])
def test_other_letters_between_cells_must_be_said(tmp_path: Path, delimiter: str, line: str) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False, sep=delimiter)
    with pytest.raises(ValueError, match="must have commas between its cells") as told:
        features(tmp_path / "t.csv")
    assert str(told.value).splitlines()[1:] == [f"    delimiter: {line}"]


def test_json_lines_are_rows_too(tmp_path: Path) -> None:
    FRAME.to_json(tmp_path / "t.jsonl", orient="records", lines=True, double_precision=15)
    FRAME.to_parquet(tmp_path / "t.parquet")
    near, far = (features(tmp_path / f"t.{suffix}").train for suffix in ("jsonl", "parquet"))
    np.testing.assert_allclose(near.x, far.x, rtol=1e-5)


def test_files_with_columns_in_any_order_are_one_table(tmp_path: Path) -> None:
    FRAME.assign(a=Y)[:30].to_csv(tmp_path / "t0.csv", index=False)  # whole numbers here, others there
    FRAME[["label", "c", "a", "b"]][30:].to_csv(tmp_path / "t1.csv", index=False)
    expected = FRAME.assign(a=np.where(np.arange(60) < 30, Y, X[:, 0]))[["a", "b", "c"]].to_numpy()
    dataset = features(tmp_path / "t*.csv", standardise=False, test_share=0.01)
    assert sum((row == np.float32(expected)).all(axis=1).sum() for row in dataset.train.x) == len(dataset.train) > 50


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"a": [1] * 3 + ["oops"] + [2] * 26}, r"'a' as double in '.*t0.csv' and string, such as 'oops' in row 3,"),
        ({"extra": 1}, r"the same columns, got 'extra' in '.*t1.csv' and not in '.*t0.csv'"),
        ({"b": None}, r"missing values: 30 in 'b', the first in row 0 of '.*t1.csv'"),
        ({"b": np.inf}, r"got 30 values in 'b' that are not, such as inf in row 0 of '.*t1.csv'"),
    ],
)
def test_the_file_and_the_row_that_do_not_fit_are_named(tmp_path: Path, change: Any, complaint: str) -> None:
    FRAME[:30].to_csv(tmp_path / "t0.csv", index=False)
    FRAME[30:].assign(**change).to_csv(tmp_path / "t1.csv", index=False)
    with pytest.raises(ValueError, match=complaint):
        features(tmp_path / "t*.csv")


def test_a_line_that_does_not_fit_is_named_and_a_folder_gets_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,label\n" + "1.5,0\n" * 9 + "1\n")
    with pytest.raises(ValueError, match=r"Row #11: Expected 2 columns, got 1: 1; correct it, or write it again"):
        features(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"; name its files, such as '.*/\*.csv'"):
        features(tmp_path)


def test_files_that_systems_leave_are_not_read(tmp_path: Path) -> None:
    for name in ("t.csv", "._t.csv", "__MACOSX/t.csv", ".ipynb_checkpoints/t-checkpoint.csv", "deep/er/u.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        FRAME.to_csv(tmp_path / name, index=False)
    dataset = features(tmp_path / "**/*.csv")
    assert len(dataset.train) + len(dataset.test) == 120
    assert len(features(tmp_path / "__MACOSX/*.csv").train) == len(features(tmp_path / "t.csv").train)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_other_letters_than_those_of_utf_8_are_refused_with_a_cure(tmp_path: Path, encoding: str) -> None:
    FRAME.rename(columns={"a": "é"}).to_csv(tmp_path / "t.csv", index=False, encoding=encoding)
    with pytest.raises(ValueError, match="write it again, in UTF-8"):
        features(tmp_path / "t.csv")
