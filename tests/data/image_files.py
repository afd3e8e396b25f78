"""Small images in files, and the data sets that are read from them."""

from pathlib import Path
from typing import Any

from data_sets import DATA
from PIL import Image

from raysim.data import Dataset


def load(name: str, path: Path, **settings: Any) -> Dataset:
    block = {"name": name, "path": str(path), "clients": 1, "partition": "iid", "size": 4, **settings}
    dataset = DATA.validate_python(block).load()
    assert isinstance(dataset, Dataset)
    return dataset


def write_image(path: Path, grey: int, kind: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(kind, (9, 7), grey if kind == "L" else (grey,) * 3).save(path)


def shades(dataset: Dataset) -> tuple[list[int], list[int]]:
    """The first pixels of training and of test images."""
    return dataset.train.x[:, 0, 0, 0].tolist(), dataset.test.x[:, 0, 0, 0].tolist()
