"""Files and arrays as people have them: they are read as they are meant, or it is told what is seldom meant."""

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from data_sets import load, part
from image_files import load as load_images
from image_files import shades, write_image
from PIL import Image
from scipy.sparse import csr_matrix

from raysim.data import Table
from raysim.data.loaded import load as loaded
from raysim.data.sources.in_memory import InMemory
from raysim.data.sources.leaks import repeated, told_by
from raysim.data.sources.pixels import SUFFIXES
from raysim.parts.rng import generator

DRAW = generator(0, "odd files")
Y = DRAW.integers(3, size=60)
X = DRAW.standard_normal((60, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=Y)


def features(path: Path, **keys: Any) -> Any:
    return load(name="table", path=str(path), label="label", **keys)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("semicolons.csv", {"sep": ";"}),
        ("decimal_commas.csv", {"sep": ";", "decimal": ","}),
        ("tabs.csv", {"sep": "\t"}),
        ("tabs.tsv", {"sep": "\t"}),
        ("CAPITALS.CSV", {}),
        ("mark.csv", {"encoding": "utf-8-sig"}),
        ("lines.csv", {"lineterminator": "\r\n"}),
    ],
)
def test_tables_are_read_whatever_is_between_their_cells(tmp_path: Path, name: str, how: Any) -> None:
    FRAME.to_csv(tmp_path / name, index=False, **how)
    dataset = features(tmp_path / name, standardise=False, test_share=0.5)
    FRAME.to_csv(tmp_path / "plain.csv", index=False)
    plain = features(tmp_path / "plain.csv", standardise=False, test_share=0.5)
    assert dataset.notes == ()
    np.testing.assert_array_equal(dataset.train.x, plain.train.x)
    np.testing.assert_array_equal(dataset.train.y, plain.train.y)


@pytest.mark.parametrize(
    ("first", "row"),
    [
        ('"a, in cm";b;label', "{0};{1};{2}"),  # what cuts into most names is between cells
        ("a|b|label", "{0}|{1}|{2}"),
        ("a\tb\tlabel", "{0}\t{1}\t{2}"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r"])
def test_decimal_commas_are_read_among_whole_numbers(tmp_path: Path, first: str, row: str, end: str) -> None:
    """A column of which some cells are whole is no text, so a label of it is a target."""
    a, b = X[:, 0].round(3), np.where(np.arange(60) % 5, X[:, 1].round(3), 7)
    rows = zip(a, b, 2 * b, strict=True)
    lines = [first, *(row.format(*(f"{value:g}".replace(".", ",") for value in cells)) for cells in rows)]
    (tmp_path / "t.csv").write_text(end.join(lines))
    dataset = load(name="table", path=str(tmp_path / "t.csv"), label="label", standardise=False, test_share=0.01)
    assert (dataset.loss, dataset.train.x.shape) == ("squared_error", (59, 2))
    np.testing.assert_allclose(dataset.train.y, 2 * dataset.train.x[:, 1], rtol=1e-6)
    assert {*dataset.train.x[:, 0].tolist()} <= {*np.float32(a).tolist()}


def test_files_with_columns_in_any_order_are_one_table(tmp_path: Path) -> None:
    FRAME.assign(a=Y)[:30].to_csv(tmp_path / "t0.csv", index=False)  # whole numbers here, others there
    FRAME[["label", "c", "a", "b"]][30:].to_csv(tmp_path / "t1.csv", index=False, sep=";")
    expected = FRAME.assign(a=np.where(np.arange(60) < 30, Y, X[:, 0]))[["a", "b", "c"]].to_numpy()
    dataset = features(tmp_path / "t*.csv", standardise=False, test_share=0.01)
    assert {*dataset.train.x[:, 1].tolist()} <= {*np.float32(expected[:, 1]).tolist()}
    assert sum((row == np.float32(expected)).all(axis=1).sum() for row in dataset.train.x) == len(dataset.train) > 50


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"a": ["1"] * 3 + ["oops"] + ["2"] * 26},
            r"'a' as double in '.*t0.csv' and string, such as 'oops' in row 3,",
        ),
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


@pytest.mark.parametrize("kind", [">f8", ">i4", "complex128"])
def test_frames_of_odd_types(kind: str) -> None:
    frame = FRAME.assign(a=Y).astype({"a": kind, "label": kind if kind == ">i4" else "int64"})
    keys: Any = {"label": "label", "clients": 2, "partition": "iid", "standardise": False}
    if kind == "complex128":
        with pytest.raises(ValueError, match="columns of numbers or texts, got complex128 in column 'a'"):
            Table.of(frame, **keys).load()
        return
    dataset = Table.of(frame, **keys).load()
    assert dataset.num_classes == 3
    np.testing.assert_array_equal(dataset.train.x[:, 0], dataset.train.y)
    same = Table.of(pa.Table.from_pandas(FRAME), **keys).load()
    np.testing.assert_array_equal(same.train.x, Table.of(FRAME, **keys).load().train.x)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_other_letters_than_those_of_utf_8_are_refused_with_a_cure(tmp_path: Path, encoding: str) -> None:
    FRAME.rename(columns={"a": "é"}).to_csv(tmp_path / "t.csv", index=False, encoding=encoding)
    with pytest.raises(ValueError, match="write it again, in UTF-8"):
        features(tmp_path / "t.csv")


@pytest.mark.parametrize(("name", "step"), [("id", 10), ("Patient_ID", 7), ("index", 1)])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_of_rows_are_no_feature(tmp_path: Path, name: str, step: int, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    rows = FRAME.assign(**{name: step * DRAW.permutation(60) + 100})
    rows.to_csv(path, index=False) if suffix == ".csv" else rows.to_parquet(path)
    dataset = features(path)
    assert dataset.train.x.shape[1] == 3
    assert dataset.notes == (
        f"data.features: column {name!r} is an index of the rows, and is left out; name all inputs in data.features if "
        "it is meant",
    )


def test_numbers_of_the_rows_of_a_larger_table_are_no_feature(tmp_path: Path) -> None:
    """Such as those of training samples that were drawn; from another number on, they may be years, and are told."""
    path = tmp_path / "t.csv"
    FRAME.assign(number=DRAW.permutation(75)[:60]).to_csv(path, index=False)
    dataset = features(path)
    assert dataset.train.x.shape[1] == 3
    assert "column 'number' is an index of the rows, and is left out" in dataset.notes[0]
    for numbers in (1960 + np.arange(60), 1_600_000_000 + 60 * DRAW.permutation(60)):  # times of equal steps
        FRAME.assign(number=numbers).to_csv(path, index=False)
        dataset = features(path)
        assert dataset.train.x.shape[1] == 4
        assert "is an input, and has whole numbers that may number rows of a larger table" in dataset.notes[0]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("user", "whose samples they are, which `client` says"),
        ("Client_ID", "whose samples they are"),
        ("sample_weight", "weights of samples"),
        ("cv_fold", "what divides samples into splits"),
    ],
)
def test_columns_that_are_seldom_inputs_are_told(tmp_path: Path, name: str, what: str) -> None:
    FRAME.assign(**{name: DRAW.integers(5, size=60)}).to_csv(tmp_path / "t.csv", index=False)
    (note,) = features(tmp_path / "t.csv").notes
    assert note.startswith(f"data.features: column {name!r} is an input, and has the name of {what}")
    named = "client" if "client" in what else "columns"
    assert features(tmp_path / "t.csv", **{named: name if named == "client" else [name]}).notes == ()


def test_an_index_with_a_name_is_no_feature_in_a_file_either(tmp_path: Path) -> None:
    FRAME.set_index(pd.Index(X[:, 0] * 2, name="time")).to_parquet(tmp_path / "t.parquet")
    FRAME.set_index(pd.Index(["p"] * 60, name="who")).to_parquet(tmp_path / "u.parquet")
    assert [features(tmp_path / f"{one}.parquet").train.x.shape[1] for one in "tu"] == [3, 3]


def test_what_tells_the_label_is_told(tmp_path: Path) -> None:
    FRAME.assign(code=Y * 2 + 5, is_test=Y % 2 == 0, fold=np.arange(60) % 5).to_csv(tmp_path / "t.csv", index=False)
    told = [note.split()[2] for note in features(tmp_path / "t.csv").notes]
    assert told == ["'is_test'", "'fold'", "'code'", "'is_test'"]
    target = X[:, 0].astype(np.float32)
    assert told_by(np.c_[X, Y == 1, Y * 0], Y) == [3]
    assert told_by(X, target) == told_by(np.c_[X[:, 0] * 100, X[:, 1]], target * 3 + 7) == [0]
    assert told_by(X, np.arange(60)) == []
    (note,) = load(name="arrays", arrays={"x": np.c_[X, Y], "y": Y}).notes
    assert note.startswith("data: feature 3 of x says no more than y")


def test_test_samples_that_are_trained_on_are_told(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    both = {"path": str(tmp_path / "t.csv"), "test_path": str(tmp_path / "t.csv")}
    (note,) = loaded(part(name="table", label="label", clients=2, partition="iid", **both)).notes
    assert note == "data: 60 of 60 test inputs are training inputs, too, and test nothing new; leave them out"
    assert repeated(X[:50], X[49:]) == ()  # one of them
    assert repeated(np.zeros((50, 2)), np.zeros((9, 2))) == ()  # few values repeat themselves
    assert repeated(X[:50], X[30:]) != ()


def test_arrays_of_the_splits_beside_all_samples_are_told() -> None:
    (note,) = load(name="arrays", arrays={"x": X, "y": Y, "x_test": X[:5] + 1, "y_test": Y[:5]}).notes
    assert note.startswith("data.arrays: 'x_test', 'y_test' are not used, as x and y are all samples")
    with pytest.raises(ValueError, match=r"add 'x_train', or call 'X_train' so"):
        load(name="arrays", arrays={"X_train": X, "y_train": Y, "X_test": X, "y_test": Y})


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["cat", "Cat ", "dog"], "'Cat ' and 'cat' are labels of their own; make them alike if they mean the same"),
        (["cat", "nan", "dog"], "'nan' is a label of its own; leave its samples out if it stands for a missing one"),
        (["cat", "", "dog"], "'' is a label of its own; leave its samples out if it stands for a missing one"),
    ],
)
def test_labels_that_are_seldom_meant_are_told(labels: list[str], told: str) -> None:
    assert load(name="arrays", arrays={"x": X, "y": np.array(labels)[Y]}).notes == (f"data.task: {told}",)


def test_arrays_of_objects_are_what_they_hold() -> None:
    assert InMemory.of(X.astype(object)) == InMemory.of(X)
    assert InMemory.of(Y.astype(object)) == InMemory.of(Y)
    with pytest.raises(ValueError, match="rows of one shape"):
        InMemory.of(np.array([np.zeros(2), np.zeros(3)], dtype=object))
    with pytest.raises(ValueError, match="got 2 masked ones"):
        InMemory.of(np.ma.masked_array([1, 2, 3], mask=[True, True, False]))
    with pytest.raises(ValueError, match="got 1 missing ones, the first in row 2; leave"):
        InMemory.of(np.array([[1, 2], [3, 4], [5, None]], dtype=object))
    for sparse, cure in ((csr_matrix(X), "x.toarray()"), (torch.zeros(2, 2).to_sparse(), "x.to_dense()")):
        with pytest.raises(ValueError, match=f"give {re.escape(cure)}"):
            InMemory.of(sparse)
    with pytest.raises(ValueError, match=r"rows of one shape: .*; pad or cut them"):
        InMemory.of([[1, 2], [3]])
    assert InMemory.of(np.array(["a", "bcd"], dtype=np.dtypes.StringDType())) == InMemory.of(np.array(["a", "bcd"]))
    assert InMemory.of(np.ma.masked_array([1, 2])).shape == (2,)


@pytest.mark.parametrize(
    ("y", "cure"),
    [
        (Y + 0j, r"np.stack\(\[y.real, y.imag\], axis=1\)"),
        (np.datetime64("2020-01-01") + Y, r"make numbers of times, such as \(y - y.min\(\)\)"),
        (np.arange(60), "if they are targets, say `task: regression`"),
    ],
)
def test_labels_that_are_none_are_refused_with_what_to_do(y: Any, cure: str) -> None:
    with pytest.raises(ValueError, match=cure):
        loaded(part(name="arrays", arrays={"x": X, "y": y}, clients=2, partition="iid"))


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_pictures_are_on_white_where_nothing_is_seen(tmp_path: Path) -> None:
    """Whatever colours are stored there."""
    for label, hidden in (("a", 0), ("b", 90)):
        pixels = np.full((8, 8, 4), hidden, np.uint8)
        pixels[:, 4:] = (200, 30, 30, 255)
        pixels[:, :4, 3] = 0
        for place in range(2):
            (tmp_path / label).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / label / f"{place}.png")
    dataset = load_images("image_folder", tmp_path, size=8, test_share=0.5)
    assert dataset.train.x[:, 0, 0].tolist() == [[255] * 3] * 2
    assert dataset.train.x[:, 0, 7].tolist() == [[200, 30, 30]] * 2


@pytest.mark.parametrize("names", [("Train", "Test"), ("TRAINING", "Val"), ("train", "dev")])
def test_folders_of_splits_are_known_in_any_letters(tmp_path: Path, names: tuple[str, str]) -> None:
    for folder, grey in zip(names, (10, 50), strict=True):
        for label in "ab":
            write_image(tmp_path / folder / label / "0.png", grey + ord(label))
    dataset = load_images("image_folder", tmp_path)
    assert dataset.num_classes == 2
    assert shades(dataset) == ([107, 108], [147, 148])


def test_folders_of_systems_are_no_classes_and_one_class_is_told(tmp_path: Path) -> None:
    for place in range(4):
        write_image(tmp_path / "data/a" / f"{place}.png", 10 * place)
        write_image(tmp_path / "data/b" / f"{place}.png", 10 * place + 5)
    for name in ("__MACOSX", "__pycache__", "@eaDir", ".ipynb_checkpoints"):
        write_image(tmp_path / "data" / name / "0.png", 99)
    assert load_images("image_folder", tmp_path / "data").notes == ()
    (note,) = load_images("image_folder", tmp_path).notes
    assert "'data' is the only class" in note


def test_frames_that_are_not_used_are_told(tmp_path: Path) -> None:
    for label in "ab":
        for place in range(2):
            first, second = (Image.new("L", (8, 8), shade + place + ord(label)) for shade in (0, 100))
            (tmp_path / label).mkdir(exist_ok=True)
            first.save(tmp_path / label / f"{place}.gif", save_all=True, append_images=[second] * place)
    (note,) = load_images("image_folder", tmp_path, test_share=0.5).notes
    assert (
        note.startswith("data.path: of 2 files of") and "with several frames, such as 'a/1.gif', the first is" in note
    )


def test_every_format_of_pictures_is_one_that_pillow_reads() -> None:
    Image.init()
    known = {suffix: kind for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    assert {*SUFFIXES} <= {*known, ".pnm", ".mpo"}


@pytest.mark.parametrize("suffix", ["avif", "jp2", "JPE", "tga", "pbm", "ico"])
def test_pictures_of_rare_formats_are_used(tmp_path: Path, suffix: str) -> None:
    for label, shade in (("a", 0), ("b", 255)):
        for place in range(2):
            (tmp_path / label).mkdir(exist_ok=True)
            picture = Image.new("1" if suffix == "pbm" else "RGB", (16, 16), shade if suffix == "pbm" else (shade,) * 3)
            picture.save(tmp_path / label / f"{place}.{suffix}", "JPEG" if suffix == "JPE" else None)
    dataset = load_images("image_folder", tmp_path, size=16, test_share=0.5)
    assert shades(dataset) == ([0, 255], [0, 255])


@pytest.mark.parametrize("names", [("train_images", "test_images"), ("client_0", "client_1")])
def test_folders_of_splits_or_clients_that_are_taken_for_classes_are_told(tmp_path: Path, names: Any) -> None:
    for folder in names:
        for label in ("cat", "dog"):
            write_image(tmp_path / folder / label / "0.png", 10)
    (note,) = load_images("image_folder", tmp_path).notes
    first, second = sorted(names)
    assert f"folders '{first}', '{second}' are taken for classes, and in each of them are 'cat', 'dog'; if" in note
    for label in ("cat", "Cat", "@home"):  # which is no name of a system's own
        write_image(tmp_path / "other" / label / "0.png", 10)
    dataset = load_images("image_folder", tmp_path / "other")
    assert dataset.num_classes == 3
    assert any("'Cat' and 'cat' are labels of their own" in note for note in dataset.notes)


def test_pictures_behind_links_are_used(tmp_path: Path) -> None:
    for label in "ab":
        for place in range(2):
            write_image(tmp_path / "all" / label / f"{place}.png", 10 * place + ord(label))
        (tmp_path / "data" / label).mkdir(parents=True)
        (tmp_path / "data" / label / "more").symlink_to(tmp_path / "all" / label)
        (tmp_path / "data" / label / "loop").symlink_to(tmp_path / "data")
    dataset = load_images("image_folder", tmp_path / "data", test_share=0.5)
    assert sorted([*shades(dataset)[0], *shades(dataset)[1]]) == [97, 98, 107, 108]


def test_the_file_and_row_of_a_damaged_picture_are_named(tmp_path: Path) -> None:
    """Also where images are bytes alone, or their records have another order."""
    (buffer := BytesIO(), Image.new("L", (4, 4)).save(buffer, "PNG"))
    good = [buffer.getvalue()] * 6
    kind = pa.struct([("path", pa.string()), ("bytes", pa.large_binary())])
    columns = {"train": good, "test": [{"path": None, "bytes": one} for one in [*good[:2], b"broken", *good[3:]]]}
    for name, cells in columns.items():
        table = pa.table({"image": pa.array(cells, kind if name == "test" else pa.binary()), "label": [0, 1] * 3})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    block: Any = {"name": "parquet", "image": "image", "train": [str(tmp_path / "train.parquet")]}
    assert load(**block, test=block["train"]).num_classes == 2
    with pytest.raises(ValueError, match=r"row 2 of '.*test.parquet' must be a whole image"):
        load(**block, test=[str(tmp_path / "test.parquet")])


# --- arrays -----------------------------------------------------------------------------------------------------------


def test_labels_of_whole_numbers_stay_classes_in_every_type_of_them() -> None:
    """Without that, numpy makes floats of int64 and uint64, and these are targets."""
    splits = {"x_train": X, "y_train": Y, "x_test": X[:20] + 1, "y_test": Y[:20].astype(np.uint64)}
    dataset = load(name="arrays", arrays=splits)
    assert (dataset.loss, dataset.num_classes, dataset.test.y.tolist()) == ("cross_entropy", 3, Y[:20].tolist())
    large = np.array([1, 2**63, 2**64 - 1], dtype=np.uint64)[Y]
    found = load(name="arrays", arrays={**splits, "y_train": large, "y_test": np.int64(1) + 0 * Y[:20]})
    assert (found.train.y.tolist(), set(found.test.y.tolist())) == (Y.tolist(), {0})
    with pytest.raises(ValueError, match="whole numbers of 64 bits, got -1 and 18446744073709551615"):
        load(name="arrays", arrays={**splits, "y_train": large, "y_test": 0 * Y[:20] - 1})
    with pytest.raises(ValueError, match=r"got int64 of training samples and <U21 of test samples; make them alike$"):
        load(name="arrays", arrays={**splits, "y_test": Y[:20].astype(str)}, task="classes")
    with pytest.raises(ValueError, match=r"below 2\*\*53 for `task: classes`, got 1e\+19 in row 0; correct them"):
        load(name="arrays", arrays={"x": X, "y": np.full(60, 1e19)}, task="classes")
    floats = load(name="arrays", arrays={"x": X, "y": Y[:, None].astype(float)}, task="classes")
    assert (floats.loss, floats.num_classes) == ("cross_entropy", 3)


@pytest.mark.parametrize("user", [np.where(Y, Y, np.nan), np.array(["", "a", "b"])[Y]])
def test_a_missing_owner_is_no_owner(tmp_path: Path, user: np.ndarray) -> None:
    row = int((Y == 0).argmax())
    with pytest.raises(ValueError, match=f"'user' must have a value in every row, got none in row {row}; fill it"):
        load(name="arrays", arrays={"x": X, "y": Y, "user": user})
    pq.write_table(pa.table({"a": X[:, 0], "label": Y, "user": np.where(Y, Y, np.nan)}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=rf"missing values: .* in 'user', the first in row {row} of '.*t.parquet'"):
        features(tmp_path / "t.parquet", client="user")
    column = load(name="arrays", arrays={"x": X, "y": Y, "user": Y[:, None]}).train.columns["user"]
    assert column.shape == (len(column),)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("t.csv", "take data of the name `table`"),
        ("t.npy", "with numpy.savez"),
        ("t.pt", "such as 't/data.pkl'; write x"),
    ],
)
def test_files_of_other_kinds_are_no_archives_of_arrays(tmp_path: Path, name: str, cure: str) -> None:
    FRAME.to_csv(tmp_path / "t.csv")
    np.save(tmp_path / "t.npy", X)
    torch.save({"x": torch.zeros(2)}, tmp_path / "t.pt")
    with pytest.raises(ValueError, match=rf"{name}' must be a whole .npz file of arrays .*{re.escape(cure)}"):
        load(name="arrays", path=str(tmp_path / name))


@pytest.mark.parametrize(
    ("x", "y", "keys", "complaint"),
    [
        (
            np.where(np.arange(12).reshape(4, 3) == 7, -1, 3),
            [0, 1] * 2,
            {"inputs": "tokens"},
            "got -1 in row 2, place 1",
        ),
        (
            X[:4],
            np.where(np.arange(12).reshape(4, 3) == 7, 0.5, 1),
            {"task": "multi_label"},
            "with 0.5 in row 2; make it",
        ),
    ],
)
def test_the_place_of_what_does_not_fit_is_named(x: Any, y: Any, keys: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        load(name="arrays", arrays={"x": x, "y": np.array(y)}, **keys)


def test_texts_that_may_be_targets_are_told() -> None:
    texts = np.array([f"{1000 * value:,.1f}" for value in X[:, 0]])
    many, numbers = load(name="arrays", arrays={"x": X, "y": texts}).notes
    assert many.startswith("data.task: y are texts of") and many.endswith("if they are targets, make numbers of them")
    assert numbers.startswith("data.task: labels are texts of numbers, such as '-")
    assert load(name="arrays", arrays={"x": X, "y": Y.astype(str)}).notes == ()  # names of digits


def test_arrays_beside_the_samples_are_told() -> None:
    """Such as the names of classes."""
    beside = {"x": X, "y": Y, "user": Y, "names": np.array(["a", "b", "c"]), "version": np.array(3)}
    dataset = load(name="arrays", arrays=beside)
    assert list(dataset.train.columns) == ["user"]
    assert dataset.notes == ("data.arrays: 'names', 'version' are not used, as they do not have a row for each sample",)


def test_numbers_on_another_scale_are_told() -> None:
    pixels = DRAW.integers(256, size=(60, 8, 8, 3)).astype(np.float32)
    splits = {"x_train": pixels, "y_train": Y, "x_test": pixels[::-1] / 255, "y_test": Y}
    assert "data: test inputs are on another scale" in told(arrays=splits)[0]
    assert told(arrays={**splits, "x_test": pixels[::-1] / 3}) == ()
    features = {"x_train": X, "y_train": Y, "x_test": X[::-1] * [1, 1000, 1] + [0, 0, 90], "y_test": Y}
    assert told(arrays=features)[0].startswith("data: features 1, 2 of test inputs are on another scale")
    (note,) = told(arrays={"x": pixels, "y": Y}, scale="unit")
    assert note.startswith("data.scale: x are floats up to 255, which `scale: unit` leaves so; give bytes (uint8)")
    assert told(arrays={"x": pixels / 255, "y": Y}, scale="unit") == ()


def told(**keys: Any) -> Any:
    """The notes of arrays, with those of both splits together."""
    return loaded(part(name="arrays", clients=2, partition="iid", **keys)).notes


def test_bytes_of_three_axes_may_be_series() -> None:
    series = DRAW.integers(256, size=(60, 12, 4), dtype=np.uint8)
    (note,) = load(name="arrays", arrays={"x": series, "y": Y}).notes
    assert note.endswith(
        "taken for grey images of 12 x 4; if they are series (n, steps, sensors), say `inputs: series`"
    )
    assert load(name="arrays", arrays={"x": series, "y": Y}, inputs="series").train.x.shape[1:] == (12, 4)


@pytest.mark.parametrize(("place", "where"), [((7, 2), "row 7, feature 2"), ((7, 1, 3), r"row 7, place \(1, 3\)")])
def test_a_number_that_is_too_large_is_shown(place: tuple[int, ...], where: str) -> None:
    x = DRAW.standard_normal((60, 4, 4)[: len(place)])
    x[place] = 1e300
    with pytest.raises(ValueError, match=rf"got 1 values that are not, such as 1e\+300 in {where}; fill them"):
        load(name="arrays", arrays={"x": x, "y": Y})
