"""Tables in files: how they are read, which columns are features, and what must be said of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import Raw, digits
from data_sets import load

import raysim
from raysim import parse_scenario
from raysim.data import Table
from raysim.parts.rng import generator

# --- how files are read -----------------------------------------------------------------------------------------------


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


# --- which columns are features ---------------------------------------------------------------------------------------


def frame(rows: int = 240) -> pd.DataFrame:
    draw = generator(0, "table", rows)
    kind = draw.integers(3, size=rows)
    x = draw.standard_normal((rows, 2)) + 4 * np.stack([kind == 0, kind == 1], axis=1)
    columns = {"width": 100 * x[:, 0], "height": x[:, 1], "wild": draw.random(rows) < 0.5}
    return pd.DataFrame({**columns, "kind": np.array(["oak", "ash", "elm"])[kind], "site": draw.integers(4, size=rows)})


def table(path: Path, rows: pd.DataFrame | None = None) -> str:
    rows = frame() if rows is None else rows
    if path.suffix == ".parquet":
        rows.to_parquet(path)
    else:
        rows.to_csv(path, index=False)
    return str(path)


def test_a_frame_in_memory_is_the_table_of_its_file(tmp_path: Path) -> None:
    keys: Raw = {"label": "kind", "clients": "site"}
    near, far = Table.of(frame(), **keys), Table(path=table(tmp_path / "t.parquet"), **keys)
    for one, other in [(near, far), (Table.of(frame(), frame(30), **keys), far.model_copy(update=of_test(tmp_path)))]:
        ours, theirs = one.load(), other.load()
        assert np.array_equal(ours.train.x, theirs.train.x) and np.array_equal(ours.test.y, theirs.test.y)
        assert ours.train.columns["site"].tolist() == theirs.train.columns["site"].tolist()
    own = {"name": "table", "frame": frame(), **keys}
    raw = digits(data=own, model="mlp", world__dispatch__per_round=2)
    data = parse_scenario(raw).resolved()["data"]
    assert data["path"] is None
    assert data["frame"]["kind"] == {"shape": [240], "dtype": "<U3", "hash": data["frame"]["kind"]["hash"]}
    result = raysim.run(raysim.parse_scenario(raw), out=tmp_path / "runs", inline=True, progress=False)
    assert result.info["status"] == "finished"
    with pytest.raises(ValueError, match="must be given from Python again"):
        Table(**{**keys, "frame": data["frame"]}).load()


def of_test(folder: Path) -> dict[str, str]:
    return {"test_path": table(folder / "test.parquet", frame(30))}


def test_frames_that_make_no_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="exactly one of `path` and `frame`"):
        Table(label="kind")
    with pytest.raises(ValueError, match="`test_frame` beside `frame`"):
        Table(label="kind", frame=frame(), test_path="a.csv")
    with pytest.raises(ValueError, match="one column of each name"):
        Table.of(pd.DataFrame([[1, 2]], columns=["a", "a"]), label="a")
    with pytest.raises(ValueError, match="'frame' must have a column 'kinds'"):
        Table.of(frame(), label="kinds").load()


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_features_are_standardised_and_labels_numbered_in_sorted_order(tmp_path: Path, name: str) -> None:
    dataset = load(name="table", path=table(tmp_path / name), label="kind", clients="site")
    assert (dataset.num_classes, dataset.train.x.shape, dataset.test.x.shape) == (3, (193, 3), (47, 3))
    np.testing.assert_allclose(dataset.train.x.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(dataset.train.x.std(axis=0), 1, atol=1e-5)
    counts = frame()["kind"].value_counts().sort_index()
    assert counts.index.tolist() == ["ash", "elm", "oak"]
    together = np.concatenate([dataset.train.y, dataset.test.y])
    assert np.bincount(together).tolist() == counts.tolist()
    assert set(dataset.train.columns["site"].tolist()) == {0, 1, 2, 3}


def test_features_are_taken_as_named_and_a_file_of_their_own_tests(tmp_path: Path) -> None:
    train, test = table(tmp_path / "a.csv"), table(tmp_path / "b.parquet", frame(30))
    named = {"features": ["height", "wild"], "label": "kind", "standardise": False}
    dataset = load(name="table", path=train, test_path=test, **named)
    expected = frame()[["height", "wild"]].to_numpy(dtype=np.float32)
    np.testing.assert_allclose(dataset.train.x, expected, rtol=1e-6)
    assert len(dataset.test) == 30


def test_a_label_of_floats_is_a_target_if_the_task_says_so(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet")
    dataset = load(name="table", path=path, features=["width"], label="height", task="regression")
    assert (dataset.loss, dataset.num_classes, dataset.train.y.dtype) == ("squared_error", 1, np.float32)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_large_numbers_are_standardised_before_they_are_rounded(tmp_path: Path, name: str) -> None:
    """A float32 of 1.6e9 is a multiple of 128. A column without variation stays without, though its mean is rounded."""
    times = frame().assign(width=1.6e9 + 100 * frame()["height"], height=0.1)
    x = load(name="table", path=table(tmp_path / name, times), features=["width", "height"], label="kind").train.x
    assert x.dtype == np.float32
    assert len(np.unique(x[:, 0])) == len(x)
    assert abs(x[:, 1]).max() < 1e-6


def test_columns_of_one_name_are_refused_where_they_are_used(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("width,width,height,kind\n" + "1,2,3,ash\n4,5,6,elm\n" * 5)
    with pytest.raises(ValueError, match=r"one column of each name used, got 2 columns 'width'; rename or drop the o"):
        load(name="table", path=str(path), label="kind")
    assert load(name="table", path=str(path), label="kind", features=["height"]).train.x.shape[1] == 1


@pytest.mark.parametrize(
    ("change", "keys", "complaint"),
    [
        ({}, {"label": "species"}, r"must have a column 'species', got \['width', 'height', 'wild', 'kind', 'site'\]"),
        ({}, {"features": ["width", "kind"], "label": "site"}, r"features must be numbers, got '\w+' in column"),
        ({"width": None}, {}, r"got missing values: 240 in 'width', the first in row 0 of '.*'; fill them"),
        ({}, {"exclude": ["sites"]}, r"`exclude` must name columns, got 'sites', which is none of"),
        ({}, {"categorical": ["sites"]}, r"`categorical` must name features, got 'sites'"),
        ({"width": np.inf}, {}, r"features must be finite, got 240 values in 'width'"),
        ({}, {"path": "none-*.csv"}, r"`path` must match a file, but 'none-\*.csv' matches none"),
        ({}, {"path": "t.txt"}, r"`path` must match a file, but 't.txt' matches none"),
    ],
)
def test_tables_that_do_not_fit_are_errors(
    tmp_path: Path, change: dict[str, Any], keys: dict[str, Any], complaint: str
) -> None:
    path = table(tmp_path / "t.parquet", frame().assign(**change))
    with pytest.raises((ValueError, FileNotFoundError), match=complaint):
        load(**{"name": "table", "path": path, "label": "kind", **keys})


# --- what must be said ------------------------------------------------------------------------------------------------


def lines(error: Any) -> list[str]:
    """The lines between which an error lets choose."""
    return [line.partition("#")[0].strip() for line in str(error.value).splitlines()[1:]]


def test_a_column_that_counts_is_a_feature_like_any_other(tmp_path: Path) -> None:
    days = pd.DataFrame({"day": np.arange(1, 61), "other": np.arange(60) % 7, "late": np.arange(1, 61) > 30})
    dataset = load(name="table", path=table(tmp_path / "t.csv", days), label="late")
    assert dataset.meaning is not None and dataset.meaning.inputs.names == ("day", "other")
    assert dataset.notes == ()


@pytest.mark.parametrize("kind", ["unnamed", "twice", "shuffled", "named"])
def test_a_column_without_a_name_must_be_left_out_or_named(tmp_path: Path, kind: str) -> None:
    rows = frame(60)[["width", "height", "kind"]]
    path = tmp_path / ("t.parquet" if kind in ("shuffled", "named") else "t.csv")
    name = {"unnamed": "", "twice": "Unnamed: 0", "shuffled": "__index_level_0__", "named": "who"}[kind]
    if kind in ("unnamed", "twice"):
        rows.to_csv(path)
    else:
        rows.set_index(pd.Index(np.roll(np.arange(60), 7), name="who" if kind == "named" else None)).to_parquet(path)
    if kind == "twice":
        pd.read_csv(path).to_csv(path, index=False)
    block = {"name": "table", "path": str(path), "label": "kind"}
    with pytest.raises(ValueError, match=f"must have a name for each feature, got {name!r}") as error:
        load(**block)
    first, second = lines(error)
    assert first == f'exclude: ["{name}"]' and second.startswith("features: [") and f'"{name}"' in second
    assert load(**block, exclude=[name]).train.x.shape[1] == 2
    assert load(**block, features=["width", name]).train.x.shape[1] == 2


def test_texts_are_kinds_if_it_is_said(tmp_path: Path) -> None:
    rows = frame(60).assign(place=["b", "a", "c"] * 20)
    block = {"name": "table", "path": table(tmp_path / "t.csv", rows), "label": "kind", "standardise": False}
    with pytest.raises(ValueError, match=r"must be numbers, got 'b' in column 'place', row 0 of '.*t.csv'") as error:
        load(**block)
    assert lines(error) == ['categorical: ["place"]', 'exclude: ["place"]']
    assert load(**block, exclude=["place"]).train.x.shape[1] == 4
    dataset = load(**block, features=["place", "height"], categorical=["place"])
    assert dataset.meaning.inputs.names == ("place=a", "place=b", "place=c", "height")  # type: ignore[union-attr]
    assert (dataset.train.x[:, :3].sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["5,123"] * 30, ['categorical: ["price"]', 'decimal: ","']),
        (["950", "1,250"] * 15, ['categorical: ["price"]', 'decimal: ","']),
        (["950", "oops"] * 15, ['categorical: ["price"]']),
    ],
)
def test_commas_in_numbers_are_no_decimal_points_unless_it_is_said(
    tmp_path: Path, cells: list[str], says: list[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("price;y\n" + "".join(f"{cell};{row % 2}\n" for row, cell in enumerate(cells)))
    block = {"name": "table", "path": str(path), "label": "y", "delimiter": ";", "standardise": False}
    with pytest.raises(ValueError, match=r"got '.*' in column 'price', row \d of '.*t.csv'; correct the cell") as error:
        load(**block)
    assert lines(error) == says
    pd.DataFrame({"price": cells, "y": np.arange(30) % 2}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="in column 'price'") as error:
        load(name="table", path=str(tmp_path / "t.parquet"), label="y")
    assert lines(error) == says[:1]
    if cells[0] == "5,123":
        assert set(load(**block, decimal=",").train.x[:, 0].tolist()) == {np.float32(5.123)}


def test_a_label_of_numbers_and_texts_must_be_said(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;y\n" + "".join(f"{row};{row},5\n" for row in range(40)))
    block = {"name": "table", "path": str(path), "label": "y", "delimiter": ";"}
    for task, must in ((None, "all numbers or all texts"), ("regression", "numbers for regression")):
        with pytest.raises(ValueError, match=f"labels must be {must}, got '0,5' in row 0 of") as error:
            load(**block, task=task)
        assert {"task: classes", 'decimal: ","'} <= {*lines(error)}
    assert load(**block, decimal=",", task="regression", test_share=0.1).train.y.max() > 30
    with pytest.raises(ValueError, match="floats of 40 values"):
        load(**block, decimal=",")
    frame(60).assign(site=np.arange(60) % 3 - 1).to_csv(path, index=False)
    with pytest.raises(ValueError, match="whole numbers of 3 values, -1, 0, 1") as error:
        load(name="table", path=str(path), label="site", exclude=["kind"])
    assert lines(error) == ["task: regression", "task: classes"]


@pytest.mark.parametrize("first", [2**53, 2**64])
def test_owners_whose_numbers_are_too_large_are_not_made_one(tmp_path: Path, first: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,u,y\n" + "".join(f"{row},{first + row % 10},{row % 2}\n" for row in range(40)))
    block = {"name": "table", "path": str(path), "label": "y", "clients": "u"}
    assert len({*load(**block).train.columns["u"].tolist()}) == 10  # beyond 64 bits, as texts
    parts = pd.DataFrame({"a": range(40), "u": [float(first + row % 10) for row in range(40)], "y": [0, 1] * 20})
    with pytest.raises(ValueError, match=r"column 'u' must hold texts, or numbers below 2\*\*53, got"):
        load(name="table", frame=parts, label="y", clients="u")


def test_all_that_must_be_said_of_a_table_is_told_at_once(tmp_path: Path) -> None:
    rows = frame(60).assign(place="x", price=np.arange(60) / 7)
    rows.to_csv(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="must have a name") as error:
        load(name="table", path=str(tmp_path / "t.csv"), label="price", clients="site")
    asked = [line for line in lines(error) if line.endswith(tuple("]n"))]
    assert asked[0] == 'exclude: [""]'
    assert asked[-1] == "task: regression"
    assert 'exclude: ["", "kind", "place"]' in asked


@pytest.mark.parametrize("kind", [">f8", ">i4", "complex128"])
def test_frames_of_odd_types(kind: str) -> None:
    rows = frame(60).assign(width=np.arange(60) % 3, kind=np.arange(60) % 3)
    odd = rows.astype({"width": kind, "kind": kind if kind == ">i4" else "int64"})
    keys: Any = {"label": "kind", "clients": 2, "partition": "iid", "standardise": False}
    if kind == "complex128":
        with pytest.raises(ValueError, match="columns of numbers or texts, got complex128 in column 'width'"):
            Table.of(odd, **keys).load()
        return
    dataset = Table.of(odd, **keys).load()
    np.testing.assert_array_equal(dataset.train.x[:, 0], dataset.train.y)
    same = Table.of(pa.Table.from_pandas(rows), **keys).load()
    np.testing.assert_array_equal(same.train.x, Table.of(rows, **keys).load().train.x)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("column", ["kind", "place"])
def test_a_missing_text_is_no_value_of_its_own(tmp_path: Path, name: str, column: str) -> None:
    rows = frame(30).assign(place="a forest")
    rows.loc[[3, 8], column] = None
    with pytest.raises(ValueError, match=rf"must have a value in every row .*: 2 in '{column}'"):
        load(name="table", path=table(tmp_path / name, rows), label="kind", clients="place")


@pytest.mark.parametrize(("cell", "kind"), [([1, 2], "list<.*>"), ("größe".encode("latin-1"), "binary")])
def test_columns_of_lists_or_bytes_are_refused(tmp_path: Path, cell: Any, kind: str) -> None:
    rows = frame(30).assign(kind=[cell] * 30)
    with pytest.raises(ValueError, match=f"column 'kind' must hold numbers, booleans or texts in UTF-8, got {kind};"):
        load(name="table", path=table(tmp_path / "a.parquet", rows), label="kind")


@pytest.mark.parametrize(
    ("names", "owners"),
    [
        (["1", "01", "001", "2"], ["001", "01", "1", "2"]),  # texts, so that none becomes another
        (["10", "9", "1", "2"], [1, 2, 9, 10]),
        (["1.5", "0.5", "10.5", "2.5"], [0.5, 1.5, 2.5, 10.5]),
        (["b", "a", "1", "c"], ["1", "a", "b", "c"]),
    ],
)
def test_owners_in_a_csv_file_stay_apart(names: list[str], owners: list[Any], tmp_path: Path) -> None:
    lines = [f"{names[row % 4]},{row},{row // 4 % 2}" for row in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["who,a,y", *lines]))
    found = load(name="table", path=str(tmp_path / "t.csv"), label="y", clients="who").train.columns["who"]
    assert np.unique(found).tolist() == owners


def test_a_named_index_of_a_frame_is_not_dropped_without_a_word() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}, index=pd.Index(["p", "q"], name="who"))
    with pytest.raises(ValueError, match=r"got an index 'who'; make it a column with reset_index\(\)"):
        Table.of(frame, label="y")
    assert Table.of(frame.reset_index(drop=True), label="y").frame is not None


def test_all_columns_of_texts_are_categorical_by_one_word(tmp_path: Path) -> None:
    frame = pd.DataFrame({"town": ["b", "a"] * 20, "age": range(40), "y": [0, 0, 1, 1] * 10})
    found = load(name="table", frame=frame, label="y", categorical="all", standardise=False)
    assert found.meaning is not None and found.meaning.inputs.names == ("town=a", "town=b", "age")
    assert found.meaning.inputs.kinds == {"town": ("a", "b")}
