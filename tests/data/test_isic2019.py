"""ISIC 2019: images whose kind stands in a table."""

from pathlib import Path

import pytest
from image_files import load, shades, write_image

from raysim.data.sources.isic2019 import CLASSES


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
