"""Data in folders of image files, one for each class."""

from pathlib import Path

import numpy as np
import pytest
from image_files import load, shades, write_image

from raysim.data.sources.images import channel_statistics


@pytest.mark.parametrize("test", ["test", "val"])
def test_folders_of_training_and_test_images(tmp_path: Path, test: str) -> None:
    write_image(tmp_path / "train/cat/1.png", 10)
    write_image(tmp_path / "train/cat/0.PNG", 20, "L")
    write_image(tmp_path / "train/ant/x.bmp", 30)
    (tmp_path / "train/cat/notes.txt").write_text("no image")
    write_image(tmp_path / test / "cat/0.png", 40)
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


def test_a_hidden_folder_is_no_class_and_one_without_images_is_an_error(tmp_path: Path) -> None:
    for i in range(4):
        write_image(tmp_path / f"ant/{i}.png", i)
        (tmp_path / "bee").mkdir(exist_ok=True)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    with pytest.raises(ValueError, match=r"'bee' in .* must hold images of its class, named \*.png, .*but holds none"):
        load("image_folder", tmp_path)
    write_image(tmp_path / "bee/0.png", 1)
    dataset = load("image_folder", tmp_path)
    assert (dataset.num_classes, sorted({*dataset.train.y.tolist()})) == (2, [0, 1])
