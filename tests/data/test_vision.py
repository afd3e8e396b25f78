"""Images as data sets: the digits, how pixels are scaled, subsets, and the original files of MNIST and CIFAR."""

import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import NO_SERVER, digits, load, part, random_images

from raysim.data import federate
from raysim.data.dataset import Split
from raysim.data.sources.images import channel_statistics
from raysim.data.sources.vision import unpickle
from raysim.parts.rng import generator


def test_channel_statistics_are_those_of_the_scaled_pixels() -> None:
    x = random_images(1500, 4, 3, 3)
    mean, std = channel_statistics(x)
    np.testing.assert_allclose(mean, (x / 255).mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(std, (x / 255).std((0, 1, 2)), rtol=1e-12)


def test_a_constant_channel_has_deviation_one() -> None:
    assert channel_statistics(np.full((2, 3, 3, 1), 51, np.uint8)) == ((0.2,), (1.0,))


def test_the_pixels_are_scaled_to_mean_0_and_deviation_1_or_left_from_0_to_1() -> None:
    """The standard scale is that of the training images; either way the stored pixels stay."""
    standard, unit = digits().load(), digits(scale="unit").load()
    np.testing.assert_array_equal(standard.train.x, unit.train.x)
    assert (standard.mean, standard.std) == channel_statistics(standard.train.x)
    assert (unit.mean, unit.std) == ((0.0,), (1.0,))


def test_a_balanced_subset_has_the_first_samples_of_each_label_in_stored_order() -> None:
    whole, part_of_it = digits().load(), digits(train_samples=50, test_samples=20).load()
    for all_samples, used, each in ((whole.train, part_of_it.train, 5), (whole.test, part_of_it.test, 2)):
        rows = np.sort(np.concatenate([np.flatnonzero(all_samples.y == label)[:each] for label in range(10)]))
        np.testing.assert_array_equal(used.x, all_samples.x[rows])
        np.testing.assert_array_equal(used.y, all_samples.y[rows])
    assert (part_of_it.mean, part_of_it.std) == channel_statistics(part_of_it.train.x)
    assert part_of_it.mean != whole.mean


def test_subsets_that_cannot_be_balanced_are_errors() -> None:
    uneven = digits(train_samples=1004, test_samples=3)
    assert uneven.problems() == [
        "`train_samples` must be a multiple of the number of labels, 10, got 1004; take 1000",
        "`test_samples` must be a multiple of the number of labels, 10, got 3; take 10",
    ]
    with pytest.raises(ValueError, match="`train_samples` must be a multiple"):
        uneven.load()
    fewest = int(np.bincount(digits().load().test.y).min())
    assert len(digits(test_samples=fewest * 10).load().test) == fewest * 10
    with pytest.raises(ValueError, match=rf"takes {fewest + 1} samples of each label, got {fewest} of label \d"):
        digits(test_samples=fewest * 10 + 10).load()


def test_the_scenario_chooses_size_and_channels() -> None:
    """As Feddle brings Fashion-MNIST to the form of CIFAR-10; the scale is that of the images as they are then."""
    plain, made = digits().load(), digits(size=32, channels=3).load()
    assert made.train.x.shape == (1438, 32, 32, 3)
    assert made.test.x.shape == (359, 32, 32, 3)
    assert (made.train.x == made.train.x[..., :1]).all()
    assert (made.mean, made.std) == channel_statistics(made.train.x)
    np.testing.assert_array_equal(digits(channels=3).load().train.x[..., 1:2], plain.train.x)


@pytest.mark.parametrize(
    "x", [np.zeros((4, 8, 8), np.uint8), np.zeros((4, 8, 8, 1), np.uint16), np.zeros((4, 8, 8, 1))]
)
def test_images_of_a_users_own_class_must_be_bytes_with_channels(x: np.ndarray) -> None:
    split = Split(x, np.arange(4) % 2)
    with pytest.raises(ValueError, match=rf"images must be uint8 \(n, height, width, channels\), got {x.dtype}"):
        digits().dataset(split, split, 2)


# --- original files ---------------------------------------------------------------------------------------------------


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
