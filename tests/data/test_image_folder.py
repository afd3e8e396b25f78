"""Data in folders of image files: one for each class, or ISIC 2019's, whose kinds stand in a table."""

from pathlib import Path

import numpy as np
import pytest
from image_files import load, shades, write_image

from raysim.data.sources.image_folder import CLASSES
from raysim.data.sources.images import channel_statistics


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
