"""Data in CIFAR's files."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import load, part, random_images

from raysim.data.sources.vision import unpickle


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
