"""Images in folders: which files are used, as they are shown, and what is kept of them between runs."""

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_sets import load as load_any
from image_files import load, shades, write_image
from PIL import Image

from raysim.data.sources import images
from raysim.data.sources.image_folder import CLASSES, TEST
from raysim.data.sources.images import SUFFIXES, channel_statistics


def test_folders_of_training_and_test_images(tmp_path: Path) -> None:
    write_image(tmp_path / "train/cat/1.png", 10)
    write_image(tmp_path / "train/cat/0.PNG", 20, "L")
    write_image(tmp_path / "train/ant/x.bmp", 30)
    (tmp_path / "train/cat/notes.txt").write_text("no image")
    write_image(tmp_path / "test/cat/0.png", 40)
    dataset = load("image_folder", tmp_path)
    assert shades(dataset) == ([30, 20, 10], [40])
    assert (dataset.train.y.tolist(), dataset.test.y.tolist(), dataset.num_classes) == ([0, 1, 1], [1], 2)
    assert dataset.train.x.shape == (3, 4, 4, 3)
    assert (dataset.mean, dataset.std) == channel_statistics(dataset.train.x)


@pytest.mark.parametrize("folder", ["", "train"])
def test_without_a_test_folder_a_share_of_each_class_tests(tmp_path: Path, folder: str) -> None:
    for label, name in enumerate("ab"):
        for i in range(10 * (label + 1)):
            write_image(tmp_path / folder / name / f"{i:02}.png", 100 * label + i)
    dataset, again = (load("image_folder", tmp_path, test_share=0.2) for _ in range(2))
    assert np.bincount(dataset.train.y).tolist() == [8, 16]
    assert np.bincount(dataset.test.y).tolist() == [2, 4]
    train, test = shades(dataset)
    assert sorted(train + test) == [*range(10), *range(100, 120)]
    assert shades(again) == (train, test)


def test_only_the_images_that_are_used_are_decoded(tmp_path: Path) -> None:
    for name in "ab":
        write_image(tmp_path / f"train/{name}/0.png", 5)
        (tmp_path / f"train/{name}/1.png").write_text("no image")
        write_image(tmp_path / f"test/{name}/0.png", 6)
    assert shades(load("image_folder", tmp_path, train_samples=2)) == ([5, 5], [6, 6])
    with pytest.raises(ValueError, match=r"1.png' must be a whole image, got no known format; fetch it again"):
        load("image_folder", tmp_path)


def test_folders_without_classes_or_images_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must have a folder for each class, but has none; put the images"):
        load("image_folder", tmp_path)
    (tmp_path / "train/cat").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"train' must hold images, named \*.png, .*but hold none; put them"):
        load("image_folder", tmp_path)
    write_image(tmp_path / "train/cat/0.png", 1)
    write_image(tmp_path / "val/dog/0.png", 1)
    with pytest.raises(ValueError, match=r"must have folders of the classes in .*train' only, got 'dog'; name it as"):
        load("image_folder", tmp_path)


def test_a_class_without_images_is_an_error(tmp_path: Path) -> None:
    for i in range(4):
        write_image(tmp_path / f"ant/{i}.png", i)
        (tmp_path / "bee").mkdir(exist_ok=True)
    with pytest.raises(ValueError, match=r"'bee' in .* must hold images of its class, named \*.png, .*but holds none"):
        load("image_folder", tmp_path)


@pytest.fixture
def isic(tmp_path: Path) -> Path:
    """Five images of each kind, whose shade is 10 times the kind, plus their number."""
    lines = [",".join(("image", *CLASSES, "UNK"))]
    for label in range(8):
        for i in range(5):
            name = f"ISIC_00{label}{i}" + ("_downsampled" if i == 0 else "")
            lines.append(",".join((name, *("1.0" if k == label else "0.0" for k in range(9)))))
            write_image(tmp_path / f"ISIC_2019_Training_Input/{name}.jpg", 10 * label + i)
    (tmp_path / "ISIC_2019_Training_GroundTruth.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_isic_images_have_the_kind_that_the_table_says(isic: Path) -> None:
    dataset = load("isic2019", isic)
    train, test = shades(dataset)
    assert [shade // 10 for shade in train] == dataset.train.y.tolist() == [k for k in range(8) for _ in range(4)]
    assert [shade // 10 for shade in test] == dataset.test.y.tolist() == list(range(8))
    assert sorted(train + test) == [10 * label + i for label in range(8) for i in range(5)]
    assert (dataset.num_classes, dataset.train.x.shape) == (8, (32, 4, 4, 3))
    assert shades(load("isic2019", isic)) == (train, test)
    assert len(load("isic2019", isic, train_samples=16).train) == 16


def test_isic_files_that_are_missing_are_errors_with_the_cures(isic: Path) -> None:
    (isic / "ISIC_2019_Training_Input/ISIC_0031.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"the image 'ISIC_0031.jpg' must be in .*ISIC_2019_Training_Input',"):
        load("isic2019", isic)
    (isic / "ISIC_2019_Training_GroundTruth.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"'ISIC_2019_Training_GroundTruth.csv' must be in .*isic-archive.com"):
        load("isic2019", isic)


@pytest.mark.parametrize("row", ["ISIC_1" + ",0.0" * 9, "ISIC_1" + ",1.0" * 9, "ISIC_1,,,,,,,,,1.0"])
def test_a_row_of_the_isic_table_must_have_one_kind(isic: Path, row: str) -> None:
    with (isic / "ISIC_2019_Training_GroundTruth.csv").open("a") as table:
        table.write(row + "\n")
    with pytest.raises(ValueError, match=r"line 42 of .*must have an image's name .* and a 1 in one of the columns"):
        load("isic2019", isic)


# --- as people have them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["tif", "gif", "JPE", "avif", "tga"])
def test_images_of_other_formats_and_in_folders_below_are_used(tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        write_image(tmp_path / f"train/{name}/0.png", 10, "L")
        write_image(tmp_path / f"train/{name}/more/1.{suffix}", 20, "L")
        write_image(tmp_path / f"test/{name}/0.png", 30)
        write_image(tmp_path / f"train/{name}/.hidden/2.png", 40)
    assert shades(load("image_folder", tmp_path)) == ([10, 20] * 2, [30] * 2)


def test_files_and_folders_of_images_that_are_not_used_are_told(tmp_path: Path) -> None:
    for folder in ("train", "test", "valid"):
        write_image(tmp_path / folder / "a/0.png", 10)
        write_image(tmp_path / folder / "b/0.png", 20)
    (tmp_path / "train/a/notes.txt").write_text("no image")
    write_image(tmp_path / "test/loose.png", 10)
    meaning = load("image_folder", tmp_path).meaning
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
    dataset = load("image_folder", tmp_path, size=16, test_share=0.5)
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
    dataset = load("image_folder", tmp_path, size=8, test_share=0.5)
    assert dataset.train.x[:, 0, 0].tolist() == [[255] * 3] * 2
    assert dataset.train.x[:, 0, 7].tolist() == [[200, 30, 30]] * 2


@pytest.mark.parametrize("names", [("Train", "Test"), ("TRAINING", "Val"), *(("train", name) for name in TEST)])
def test_folders_of_splits_are_known_in_any_letters(tmp_path: Path, names: tuple[str, str]) -> None:
    for folder, grey in zip(names, (10, 50), strict=True):
        for label in "ab":
            write_image(tmp_path / folder / label / "0.png", grey + ord(label))
    dataset = load("image_folder", tmp_path)
    assert dataset.num_classes == 2
    assert shades(dataset) == ([107, 108], [147, 148])


def test_folders_of_systems_are_no_classes_and_the_classes_are_said(tmp_path: Path) -> None:
    for place in range(4):
        write_image(tmp_path / "data/a" / f"{place}.png", 10 * place)
        write_image(tmp_path / "data/b" / f"{place}.png", 10 * place + 5)
    for name in ("__MACOSX", "__pycache__", "@eaDir", ".ipynb_checkpoints"):
        write_image(tmp_path / "data" / name / "0.png", 99)
    meaning = load("image_folder", tmp_path / "data").meaning
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
    dataset = load("image_folder", tmp_path / "data", test_share=0.5)
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
    assert load_any(**block, test=block["train"]).num_classes == 2
    with pytest.raises(ValueError, match=r"row 2 of '.*test.parquet' must be a whole image"):
        load_any(**block, test=[str(tmp_path / "test.parquet")])


# --- what is kept between runs ----------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of entries; nothing is in it at first."""
    monkeypatch.setenv("RAYSIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "images"


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of images, each as often as it was decoded."""
    names: list[str] = []
    real = images.decode

    def decode(content: bytes, size: int | None, file: str) -> np.ndarray:
        names.append(Path(file.strip("'")).name)
        return real(content, size, file)

    monkeypatch.setattr(images, "decode", decode)
    yield names


def write(tmp_path: Path) -> Path:
    write_image(tmp_path / "images/train/a/0.png", 10)
    write_image(tmp_path / "images/train/b/1.png", 20)
    write_image(tmp_path / "images/test/a/2.png", 30)
    return tmp_path / "images"


def test_images_are_decoded_once_until_a_file_or_the_size_changes(
    tmp_path: Path, cache: Path, decodings: list[str]
) -> None:
    folder = write(tmp_path)
    first = load("image_folder", folder)
    assert sorted(decodings) == ["0.png", "1.png", "2.png"]
    again = load("image_folder", folder)
    assert len(decodings) == 3 and len(list(cache.iterdir())) == 2  # training and test images
    assert shades(again) == shades(first) == ([10, 20], [30])
    write_image(folder / "train/a/0.png", 40)
    os.utime(folder / "train/a/0.png", (1, 1))
    assert shades(load("image_folder", folder)) == ([40, 20], [30])
    assert len(decodings) == 5
    assert load("image_folder", folder, size=2).train.x.shape == (2, 2, 2, 3)
    assert len(decodings) == 8


@pytest.mark.parametrize("damage", ["cut", "flipped", "exchanged", "no array"])
def test_what_is_damaged_or_foreign_is_made_again(
    tmp_path: Path, cache: Path, decodings: list[str], damage: str
) -> None:
    folder = write(tmp_path)
    load("image_folder", folder)
    one, other = sorted(cache.iterdir(), key=lambda entry: entry.stat().st_size)
    content = bytearray(other.read_bytes())
    content[150] ^= 1  # a pixel
    damaged = {
        "cut": other.read_bytes()[:-1],
        "flipped": bytes(content),
        "exchanged": one.read_bytes(),
        "no array": b"\x80\x04N.",
    }
    other.write_bytes(damaged[damage])
    assert shades(load("image_folder", folder)) == ([10, 20], [30])
    assert len(decodings) == 5  # the two training images once more
    load("image_folder", folder)
    assert len(decodings) == 5


def test_entries_that_were_not_used_for_longest_make_room(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path)
    load("image_folder", folder)
    used = {entry.name for entry in cache.iterdir()}
    for entry in cache.iterdir():
        os.utime(entry, (1, 1))
    monkeypatch.setattr(
        "raysim.data.sources.reading.LIMIT", 2.5 * sum(entry.stat().st_size for entry in cache.iterdir())
    )
    load("image_folder", folder, size=5)
    assert used <= {entry.name for entry in cache.iterdir()}
    load("image_folder", folder, size=6)
    kept = {entry.name for entry in cache.iterdir()}
    assert not used & kept and kept


def test_where_nothing_can_be_kept_it_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("no folder")
    monkeypatch.setenv("RAYSIM_CACHE", str(tmp_path / "taken"))
    folder = write(tmp_path)
    for _ in range(2):
        assert shades(load("image_folder", folder)) == ([10, 20], [30])
    (told,) = [record.message for record in caplog.records if "cannot be kept" in record.message]
    assert "RAYSIM_CACHE" in told
