"""Decoded images are kept between runs, and never believed when they are not what was kept."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from image_files import load, shades, write_image

from raysim.data.sources import images


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
