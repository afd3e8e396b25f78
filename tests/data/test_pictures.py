"""Folders and files of pictures as people have them: they are used as they are shown."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_sets import load
from image_files import load as load_images
from image_files import shades, write_image
from PIL import Image

from raysim.data.sources.image_folder import TEST
from raysim.data.sources.images import SUFFIXES


@pytest.mark.parametrize("suffix", ["tif", "gif", "JPE", "avif", "tga"])
def test_images_of_other_formats_and_in_folders_below_are_used(tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        write_image(tmp_path / f"train/{name}/0.png", 10, "L")
        write_image(tmp_path / f"train/{name}/more/1.{suffix}", 20, "L")
        write_image(tmp_path / f"test/{name}/0.png", 30)
        write_image(tmp_path / f"train/{name}/.hidden/2.png", 40)
    assert shades(load_images("image_folder", tmp_path)) == ([10, 20] * 2, [30] * 2)


def test_files_and_folders_of_images_that_are_not_used_are_told(tmp_path: Path) -> None:
    for folder in ("train", "test", "valid"):
        write_image(tmp_path / folder / "a/0.png", 10)
        write_image(tmp_path / folder / "b/0.png", 20)
    (tmp_path / "train/a/notes.txt").write_text("no image")
    write_image(tmp_path / "test/loose.png", 10)
    meaning = load_images("image_folder", tmp_path).meaning
    assert meaning is not None and meaning.unused == (
        "folder 'valid'",
        "1 files of 'train', such as 'a/notes.txt'",
        "1 files of 'test', such as 'loose.png'",
    )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_as_they_are_shown(tmp_path: Path, orientation: int) -> None:
    """The expected pixels are those of the definition of the eight orientations, by row and column."""
    stored = np.zeros((16, 16), np.uint8)
    stored[:8, :8], stored[:8, 8:], stored[8:, :8], stored[8:, 8:] = 0, 80, 160, 240
    exif = Image.Exif()
    exif[0x0112] = orientation
    for label in "ab":
        for place in range(2):
            (tmp_path / label).mkdir(exist_ok=True)
            Image.fromarray(stored).save(tmp_path / label / f"{place}.png", exif=exif)
    shown = {
        1: stored,
        2: stored[:, ::-1],
        3: stored[::-1, ::-1],
        4: stored[::-1],
        5: stored.T,
        6: np.rot90(stored, -1),
        7: stored[::-1, ::-1].T,
        8: np.rot90(stored),
    }[orientation]
    dataset = load_images("image_folder", tmp_path, size=16, test_share=0.5)
    np.testing.assert_array_equal(dataset.train.x[0, :, :, 0], shown)


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


@pytest.mark.parametrize("names", [("Train", "Test"), ("TRAINING", "Val"), *(("train", name) for name in TEST)])
def test_folders_of_splits_are_known_in_any_letters(tmp_path: Path, names: tuple[str, str]) -> None:
    for folder, grey in zip(names, (10, 50), strict=True):
        for label in "ab":
            write_image(tmp_path / folder / label / "0.png", grey + ord(label))
    dataset = load_images("image_folder", tmp_path)
    assert dataset.num_classes == 2
    assert shades(dataset) == ([107, 108], [147, 148])


def test_folders_of_systems_are_no_classes_and_the_classes_are_said(tmp_path: Path) -> None:
    for place in range(4):
        write_image(tmp_path / "data/a" / f"{place}.png", 10 * place)
        write_image(tmp_path / "data/b" / f"{place}.png", 10 * place + 5)
    for name in ("__MACOSX", "__pycache__", "@eaDir", ".ipynb_checkpoints"):
        write_image(tmp_path / "data" / name / "0.png", 99)
    meaning = load_images("image_folder", tmp_path / "data").meaning
    assert meaning is not None and (meaning.labels.names, meaning.unused) == (("a", "b"), ())


def test_every_format_of_pictures_is_one_that_pillow_reads() -> None:
    Image.init()
    known = {suffix: kind for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    assert {*SUFFIXES} <= {*known, ".pnm", ".mpo"}


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
