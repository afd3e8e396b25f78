"""Data in the original files of MNIST and CIFAR."""

import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import NO_SERVER, load, part, random_images

from raysim.data import federate
from raysim.data.sources.vision import unpickle
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


def write_batch(path: Path, batch: dict[bytes, Any]) -> None:
    """Writes a file like the original ones: protocol 2, with the module names of NumPy before version 2."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(batch, protocol=2).replace(b"numpy._core", b"numpy.core"))


def test_cifar10_files_hold_colour_planes(tmp_path: Path) -> None:
    planes = random_images(5, 3, 32, 32)
    for i in range(5):
        batch = {b"data": planes[i].reshape(1, -1), b"labels": [i]}
        write_batch(tmp_path / "cifar-10-batches-py" / f"data_batch_{i + 1}", batch)
    write_batch(tmp_path / "cifar-10-batches-py/test_batch", {b"data": planes.reshape(5, -1), b"labels": [0] * 5})
    dataset = load(name="cifar10", root=str(tmp_path))
    assert dataset.train.x.shape == (5, 32, 32, 3)
    np.testing.assert_array_equal(dataset.train.x[3, :, :, 1], planes[3, 1])
    assert dataset.train.y.tolist() == [0, 1, 2, 3, 4]
    assert (len(dataset.test), dataset.num_classes) == (5, 10)


@pytest.mark.parametrize(("labels", "expected", "classes"), [("fine", [7, 99], 100), ("coarse", [1, 19], 20)])
def test_cifar100_has_both_kinds_of_labels(tmp_path: Path, labels: str, expected: list[int], classes: int) -> None:
    batch = {b"data": random_images(2, 3072), b"fine_labels": [7, 99], b"coarse_labels": [1, 19]}
    for split in ("train", "test"):
        write_batch(tmp_path / "cifar-100-python" / split, batch)
    dataset = load(name="cifar100", root=str(tmp_path), labels=labels)
    assert dataset.train.y.tolist() == dataset.test.y.tolist() == expected
    assert dataset.train.column("fine").tolist() == [7, 99]
    assert dataset.train.column("coarse").tolist() == [1, 19]
    assert dataset.num_classes == part(name="cifar100", labels=labels, clients=1, partition="iid").classes == classes


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_cifar_file_that_would_run_code_is_named_and_runs_nothing(tmp_path: Path, protocol: int) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "sprung"),)

    batch = {b"data": random_images(1, 3072), b"fine_labels": [7], b"coarse_labels": [1]}
    write_batch(tmp_path / "cifar-100-python/test", batch)
    (tmp_path / "cifar-100-python/train").write_bytes(pickle.dumps({b"meta": Trap(), **batch}, protocol))
    with pytest.raises(ValueError, match=r"'train' must be a whole pickle of texts, .* it names posix\.mkdir"):
        load(name="cifar100", root=str(tmp_path))
    assert not (tmp_path / "sprung").exists()


def test_a_cifar_file_that_is_cut_anywhere_is_an_error() -> None:
    content = pickle.dumps({b"data": random_images(1, 30), b"fine_labels": [7]}, protocol=2)
    for end in range(len(content)):
        with pytest.raises(ValueError, match="'train' must be a whole pickle of texts, numbers and arrays only, got"):
            unpickle(content[:end], "train")
