"""Images in Parquet files."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_sets import load, part, random_images
from PIL import Image


def encode(pixels: np.ndarray, kind: str = "PNG") -> dict[str, Any]:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return {"bytes": file.getvalue(), "path": None}


STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write_parquet(path: Path, images: list[dict[str, Any]], labels: list[Any], **columns: list[Any]) -> str:
    pq.write_table(pa.table({"img": pa.array(images, STRUCT), "label": labels, **columns}), path)
    return str(path)


def test_parquet_files_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    pixels = random_images(5, 6, 4, 3)
    write_parquet(tmp_path / "train-1.parquet", [encode(image) for image in pixels[2:]], [2, 0, 1], user=list("bca"))
    write_parquet(tmp_path / "train-0.parquet", [encode(image) for image in pixels[:2]], [0, 1], user=list("ab"))
    test = write_parquet(tmp_path / "test.parquet", [encode(pixels[0])], [0])
    train = str(tmp_path / "train-*.parquet")
    dataset = load(name="parquet", train=[train], test=[test], image="img", clients="user")
    np.testing.assert_array_equal(dataset.train.x, pixels)
    np.testing.assert_array_equal(dataset.test.x, pixels[:1])
    assert dataset.train.y.tolist() == [0, 1, 2, 0, 1]
    assert dataset.train.columns["user"].tolist() == list("abbca")
    assert dataset.num_classes == 3


def test_a_balanced_subset_of_parquet_files_keeps_the_columns(tmp_path: Path) -> None:
    """How many labels there are is known with the files only, and so is what cannot be balanced over them."""
    images = [encode(image) for image in random_images(5, 4, 4)]
    path = write_parquet(tmp_path / "a.parquet", images, [1, 1, 0, 1, 0], user=list("abcde"))
    files: dict[str, Any] = {"name": "parquet", "train": [path], "test": [path], "image": "img", "clients": "user"}
    train = load(**files, train_samples=4).train
    assert (train.y.tolist(), train.columns["user"].tolist()) == ([1, 1, 0, 0], list("abce"))
    assert part(**{**files, "clients": 2}, partition="iid", train_samples=3).problems() == []
    with pytest.raises(ValueError, match="`train_samples` must be a multiple of the number of labels, 2, got 3"):
        load(**files, train_samples=3)


def test_parquet_images_are_grey_only_if_all_are(tmp_path: Path) -> None:
    grey, colour = random_images(8, 8), random_images(8, 8, 3)
    one = write_parquet(tmp_path / "one.parquet", [encode(grey)], [0])
    both = write_parquet(tmp_path / "both.parquet", [encode(grey), encode(colour)], [0, 1])
    assert load(name="parquet", train=[one], test=[one], image="img").train.x.shape == (1, 8, 8, 1)
    x = load(name="parquet", train=[both], test=[one], image="img").train.x
    np.testing.assert_array_equal(x[0], np.repeat(grey[..., None], 3, axis=2))
    np.testing.assert_array_equal(x[1], colour)


def test_parquet_images_of_unequal_size_need_a_size(tmp_path: Path) -> None:
    images = [encode(np.full((side, side), 90, np.uint8), "JPEG") for side in (8, 12)]
    path = write_parquet(tmp_path / "a.parquet", images, [0, 1])
    with pytest.raises(ValueError, match=r"one size, got 2 sizes such as \[\(8, 8\), \(12, 12\)\].*set `size`"):
        load(name="parquet", train=[path], test=[path], image="img")
    x = load(name="parquet", train=[path], test=[path], image="img", size=6).train.x
    assert x.shape == (2, 6, 6, 1)
    assert (x == 90).all()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"image": "image"}, r"must have a column 'image', got \['img', 'label', 'text'\]"),
        ({"image": "label"}, r"column 'label' must hold the bytes of images, .*, got int64"),
        ({"label": "img"}, r"column 'img' must hold numbers, booleans or texts in UTF-8, got struct"),
        ({"train": ["nowhere/*.parquet"]}, r"`train` must match a file, but 'nowhere/\*.parquet' matches none"),
    ],
)
def test_parquet_files_without_what_they_must_hold_are_errors(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    path = write_parquet(tmp_path / "a.parquet", [encode(random_images(4, 4))], [0], text=["cat"])
    with pytest.raises((ValueError, FileNotFoundError), match=complaint):
        load(**{"name": "parquet", "train": [path], "test": [path], "image": "img", **change})


def test_parquet_rows_without_values_or_with_16_bits_are_errors(tmp_path: Path) -> None:
    image = encode(random_images(4, 4))
    for images, labels, complaint in (
        ([image, image], [0, None], "missing values: 1 in 'label'"),
        ([{"bytes": None, "path": "a.png"}], [0], "must hold the images themselves"),
        ([encode(np.zeros((4, 4), np.uint16))], [0], "must have 8 bits a channel"),
    ):
        path = write_parquet(tmp_path / "a.parquet", images, labels)
        with pytest.raises(ValueError, match=complaint):
            load(name="parquet", train=[path], test=[path], image="img")
