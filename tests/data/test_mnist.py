"""Data in files of MNIST's format, idx."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import NO_SERVER, load, part, random_images

from raysim.data import federate
from raysim.parts.rng import generator


def test_shards_of_a_balanced_subset_have_one_label_each(tmp_path: Path) -> None:
    """In the whole set labels differ in size, so that shards lie across two."""
    labels = generator(0, "labels").integers(10, size=600).astype(np.uint8)
    for split in ("train", "t10k"):
        write_idx(tmp_path / "MNIST/raw" / f"{split}-images-idx3-ubyte", random_images(600, 28, 28))
        write_idx(tmp_path / "MNIST/raw" / f"{split}-labels-idx1-ubyte", labels)

    def largest_number_of_labels(**settings: Any) -> int:
        shards = {"name": "shards", "per_client": 1}
        mnist = part(name="mnist", root=str(tmp_path), clients=40, partition=shards, **settings)
        table = federate(mnist, NO_SERVER, seed=0).partition_table()
        return int(np.bincount(table["client"]).max())

    assert largest_number_of_labels() == 2
    assert largest_number_of_labels(train_samples=400) == 1


def write_idx(path: Path, values: np.ndarray) -> None:
    header = bytes([0, 0, 8, values.ndim]) + b"".join(length.to_bytes(4, "big") for length in values.shape)
    content = header + values.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files_are_read_gzipped_or_not(tmp_path: Path, name: str, folder: str, suffix: str) -> None:
    images, labels = random_images(6, 28, 28), np.arange(6, dtype=np.uint8)
    for split, n in (("train", 6), ("t10k", 3)):
        write_idx(tmp_path / folder / "raw" / f"{split}-images-idx3-ubyte{suffix}", images[:n])
        write_idx(tmp_path / folder / "raw" / f"{split}-labels-idx1-ubyte{suffix}", labels[:n])
    dataset = load(name=name, root=str(tmp_path))
    np.testing.assert_array_equal(dataset.train.x, images[..., None])
    np.testing.assert_array_equal(dataset.test.x, images[:3, ..., None])
    assert dataset.train.y.dtype == np.int64
    assert dataset.test.y.tolist() == [0, 1, 2]
    assert dataset.num_classes == 10


def test_a_cut_idx_file_is_an_error(tmp_path: Path) -> None:
    for split in ("train", "t10k"):
        write_idx(tmp_path / "MNIST/raw" / f"{split}-images-idx3-ubyte", random_images(2, 28, 28))
        write_idx(tmp_path / "MNIST/raw" / f"{split}-labels-idx1-ubyte", np.arange(2, dtype=np.uint8))
    path = tmp_path / "MNIST/raw/train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"'train-images-idx3-ubyte' must be a whole IDX file.*fetch it again"):
        load(name="mnist", root=str(tmp_path))


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100"])
def test_missing_files_are_an_error_with_the_place_and_the_cures(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError) as error:
        load(name=name, root=str(tmp_path))
    assert all(text in str(error.value) for text in (str(tmp_path), "`download: true`", "put the data set there"))
