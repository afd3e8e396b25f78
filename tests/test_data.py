"""Data sets, what they are read from, and the federation that they become."""

import gzip
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from raysim.data import DATA_SETS, SERVER_DATA, Data, Dataset, Federation, ServerData, Split, federate
from raysim.data.held_out import held_out_size
from raysim.data.images import channel_statistics
from raysim.rng import generator

DATA: TypeAdapter[Any] = TypeAdapter(Data)
SERVER: TypeAdapter[Any] = TypeAdapter(ServerData)
NO_SERVER = SERVER.validate_python("none")


def part(**settings: Any) -> Any:
    """A data part, as a scenario file gives it."""
    return DATA.validate_json(TypeAdapter(dict[str, Any]).dump_json(settings))


def load(**settings: Any) -> Dataset:
    dataset = part(clients=2, partition="iid", **settings).load()
    assert isinstance(dataset, Dataset)
    return dataset


def digits(**settings: Any) -> Any:
    return part(**{"name": "digits", "clients": 10, "partition": "iid", **settings})


def random_images(*shape: int) -> np.ndarray:
    return generator(0, "images", len(shape)).integers(256, size=shape, dtype=np.uint8)


# Splits


def test_columns_of_unequal_length_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"same length, got .*'y': 2"):
        Split(np.zeros((3, 1, 1, 1), np.uint8), np.zeros(2, np.int64))


def test_taking_rows_takes_them_of_every_column() -> None:
    split = Split(np.arange(8, dtype=np.uint8).reshape(4, 2, 1, 1), np.arange(4), {"user": np.array(list("abca"))})
    taken = split.take(np.array([3, 1]))
    assert taken.x[:, 0, 0, 0].tolist() == [6, 2]
    assert (taken.y.tolist(), taken.columns["user"].tolist(), len(taken)) == ([3, 1], ["a", "b"], 2)


def test_channel_statistics_are_those_of_the_scaled_pixels() -> None:
    x = random_images(1500, 4, 3, 3)
    mean, std = channel_statistics(x)
    np.testing.assert_allclose(mean, (x / 255).mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(std, (x / 255).std((0, 1, 2)), rtol=1e-12)


def test_a_constant_channel_has_deviation_one() -> None:
    assert channel_statistics(np.full((2, 3, 3, 1), 51, np.uint8)) == ((0.2,), (1.0,))


# Data sets


def test_digits_are_the_bundled_images() -> None:
    dataset = digits().load()
    assert (len(dataset.train), len(dataset.test)) == (1438, 359)
    assert dataset.train.x.shape[1:] == (8, 8, 1)
    assert dataset.train.x.dtype == np.uint8
    assert (dataset.train.x.min(), dataset.train.x.max()) == (0, 255)
    assert dataset.num_classes == digits().classes == 10
    assert set(dataset.train.y) == set(dataset.test.y) == set(range(10))


def test_quadratic_samples_hold_center_slope_and_curvature() -> None:
    data = part(
        name="quadratic", centers=[[1, 2], [3, 4]], curvatures=[1, 5], slopes=[[0, 0.5], [0, 0]], samples=[1, 2]
    )
    dataset = data.load()
    assert (data.clients, data.size, dataset.loss, dataset.num_classes) == (2, 2, "quadratic", 0)
    assert dataset.train.x.dtype == np.float32
    assert dataset.train.x.tolist() == [[1, 2, 0, 0.5, 1], [3, 4, 0, 0, 5], [3, 4, 0, 0, 5]]
    assert dataset.train.columns["client"].tolist() == dataset.test.y.tolist() == [0, 1, 1]
    federation = federate(data, NO_SERVER, seed=0)
    assert federation.samples.tolist() == [1, 2]
    assert federation.train_rows(1).tolist() == [1, 2]


def test_a_bare_number_is_a_quadratic_of_one_variable() -> None:
    data = part(name="quadratic", centers=[1, [3.0]])
    assert data.load().train.x.tolist() == [[1, 0, 1], [3, 0, 1]]
    assert data.size == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"centers": [1, 2], "curvatures": [1]}, "`curvatures` must have an entry for each of 2 centers, got 1"),
        ({"centers": [1, 2], "slopes": [1, 2, 3]}, "`slopes` must have an entry for each of 2 centers, got 3"),
        ({"centers": [1, [2, 3]]}, r"`centers` must all be as long as the first center, 1, got lengths \[1, 2\]"),
        ({"centers": [[1, 2]], "slopes": [1]}, r"`slopes` must all be as long .* 2, got lengths \[1\]"),
        ({"centers": []}, "at least 1 item"),
    ],
)
def test_quadratics_that_do_not_fit_together_are_errors(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        part(name="quadratic", **settings)


# Images


def test_the_pixels_are_scaled_to_mean_0_and_deviation_1_or_left_from_0_to_1() -> None:
    """Of the standard scale the numbers are those of the training images; in both cases the stored pixels stay."""
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


def test_shards_of_a_balanced_subset_have_one_label_each(tmp_path: Path) -> None:
    """Of all samples they have not, for labels differ in size, and shards then lie across two."""
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


def test_subsets_that_cannot_be_balanced_are_errors() -> None:
    uneven = digits(train_samples=1004, test_samples=3)
    assert uneven.problems() == [
        "`train_samples` must be a multiple of the number of labels, 10, got 1004; take 1000",
        "`test_samples` must be a multiple of the number of labels, 10, got 3; take 10",
    ]
    with pytest.raises(ValueError, match="data: `train_samples` must be a multiple"):
        uneven.load()
    fewest = int(np.bincount(digits().load().test.y).min())
    assert len(digits(test_samples=fewest * 10).load().test) == fewest * 10
    with pytest.raises(ValueError, match=rf"takes {fewest + 1} samples of each label, got {fewest} of label \d"):
        digits(test_samples=fewest * 10 + 10).load()


# Files


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
    """As the original files: protocol 2, with the module names of NumPy before version 2."""
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


def test_a_damaged_cifar_file_is_an_error(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_batch(tmp_path / "cifar-100-python" / split, {b"data": random_images(1, 3072)})
    path = tmp_path / "cifar-100-python/train"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="'train' must be a whole pickle"):
        load(name="cifar100", root=str(tmp_path))


def encode(pixels: np.ndarray, kind: str = "PNG") -> dict[str, Any]:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return {"bytes": file.getvalue(), "path": None}


STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write_parquet(path: Path, images: list[dict[str, Any]], labels: list[Any], **columns: list[Any]) -> str:
    pq.write_table(pa.table({"img": pa.array(images, STRUCT), "label": labels, **columns}), path)
    return str(path)


def test_parquet_files_are_read_in_order_of_their_names(tmp_path: Path) -> None:
    pixels = random_images(5, 6, 4, 3)
    write_parquet(tmp_path / "train-1.parquet", [encode(image) for image in pixels[2:]], [2, 0, 1], user=list("bca"))
    write_parquet(tmp_path / "train-0.parquet", [encode(image) for image in pixels[:2]], [0, 1], user=list("ab"))
    test = write_parquet(tmp_path / "test.parquet", [encode(pixels[0])], [0])
    train = str(tmp_path / "train-*.parquet")
    dataset = load(name="parquet", train=[train], test=[test], image="img", columns=["user", "label"])
    np.testing.assert_array_equal(dataset.train.x, pixels)
    np.testing.assert_array_equal(dataset.test.x, pixels[:1])
    assert dataset.train.y.tolist() == [0, 1, 2, 0, 1]
    assert dataset.train.columns["user"].tolist() == list("abbca")
    assert dataset.num_classes == 3


def test_a_balanced_subset_of_parquet_files_keeps_the_columns(tmp_path: Path) -> None:
    """How many labels there are is known with the files only, and so is what cannot be balanced over them."""
    images = [encode(image) for image in random_images(5, 4, 4)]
    path = write_parquet(tmp_path / "a.parquet", images, [1, 1, 0, 1, 0], user=list("abcde"))
    files: dict[str, Any] = {"name": "parquet", "train": [path], "test": [path], "image": "img", "columns": ["user"]}
    train = load(**files, train_samples=4).train
    assert (train.y.tolist(), train.columns["user"].tolist()) == ([1, 1, 0, 0], list("abce"))
    assert part(**files, clients=2, partition="iid", train_samples=3).problems() == []
    with pytest.raises(ValueError, match="`train_samples` must be a multiple of the number of labels, 2, got 3"):
        load(**files, train_samples=3)


def test_parquet_images_are_grey_only_if_all_are(tmp_path: Path) -> None:
    grey, colour = random_images(8, 8), random_images(8, 8, 3)
    one = write_parquet(tmp_path / "one.parquet", [encode(grey)], [0])
    both = write_parquet(tmp_path / "both.parquet", [encode(grey), encode(colour)], [0, 1])
    assert load(name="parquet", train=[one], test=[one], image="img").train.x.shape == (1, 8, 8, 1)
    x = load(name="parquet", train=[both], test=[one], image="img").train.x
    np.testing.assert_array_equal(x[0], np.repeat(grey[..., None], 3, axis=2))
    np.testing.assert_array_equal(x[1], colour)


def test_parquet_images_of_unequal_size_need_a_size(tmp_path: Path) -> None:
    images = [encode(np.full((side, side), 90, np.uint8), "JPEG") for side in (8, 12)]
    path = write_parquet(tmp_path / "a.parquet", images, [0, 1])
    with pytest.raises(ValueError, match=r"one size, got 2 sizes such as \[\(8, 8\), \(12, 12\)\].*set `size`"):
        load(name="parquet", train=[path], test=[path], image="img")
    x = load(name="parquet", train=[path], test=[path], image="img", size=6).train.x
    assert x.shape == (2, 6, 6, 1)
    assert (x == 90).all()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"image": "image"}, r"must have a column 'image', got \['img', 'label', 'text'\]"),
        ({"image": "label"}, r"column 'label' must hold struct<bytes, path>, got int64"),
        ({"label": "text"}, r"column 'text' must hold integers from 0, got string such as 'cat'"),
        ({"train": ["nowhere/*.parquet"]}, r"'nowhere/\*.parquet' must match a file"),
    ],
)
def test_parquet_files_without_what_they_must_hold_are_errors(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    path = write_parquet(tmp_path / "a.parquet", [encode(random_images(4, 4))], [0], text=["cat"])
    with pytest.raises((ValueError, FileNotFoundError), match=complaint):
        load(**{"name": "parquet", "train": [path], "test": [path], "image": "img", **change})


def test_parquet_rows_without_values_or_with_16_bits_are_errors(tmp_path: Path) -> None:
    image = encode(random_images(4, 4))
    for images, labels, complaint in (
        ([image, image], [0, None], "column 'label' must have a value in every row"),
        ([{"bytes": None, "path": "a.png"}], [0], "must hold the images themselves"),
        ([encode(np.zeros((4, 4), np.uint16))], [0], "must have 8 bits a channel"),
    ):
        path = write_parquet(tmp_path / "a.parquet", images, labels)
        with pytest.raises(ValueError, match=complaint):
            load(name="parquet", train=[path], test=[path], image="img")


# Federations


def test_what_clients_train_and_test_on_is_each_client_s_own() -> None:
    federation = federate(digits(local_test=0.2, partition={"name": "dirichlet", "alpha": 0.5}), NO_SERVER, seed=3)
    rows = [
        np.concatenate([federation.train_rows(client), federation.local_test(client)[1]])
        for client in range(federation.clients)
    ]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(len(federation.train)))
    assert federation.samples.tolist() == [len(federation.train_rows(client)) for client in range(10)]
    for client, own in enumerate(rows):
        assert len(federation.local_test(client)[1]) == len(own) // 5


def test_a_federation_is_a_function_of_its_seed() -> None:
    server = SERVER.validate_python({"name": "in_domain", "samples": 50})
    first, again, other = (pickle.dumps(federate(digits(local_test=0.1), server, seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert isinstance(pickle.loads(first), Federation)


def test_holding_out_does_not_change_who_holds_what() -> None:
    without, with_test = (federate(digits(local_test=share), NO_SERVER, seed=0) for share in (0.0, 0.3))
    assert with_test.local_test(4)[1].size
    np.testing.assert_array_equal(
        np.sort(np.concatenate([with_test.train_rows(4), with_test.local_test(4)[1]])), without.train_rows(4)
    )


@pytest.mark.parametrize(
    ("samples", "share", "expected"),
    [(100, 0.0, 0), (100, 0.29, 29), (99, 0.1, 9), (5, 0.1, 1), (2, 0.01, 1), (1, 0.5, 0), (0, 0.5, 0), (4, 1.0, 3)],
)
def test_held_out_size_is_rounded_down_but_neither_nothing_nor_all(samples: int, share: float, expected: int) -> None:
    assert held_out_size(samples, share) == expected


def test_clients_may_have_no_samples() -> None:
    partition = {"name": "dirichlet", "alpha": 0.001, "min_size": 0, "cap": False}
    federation = federate(digits(clients=50, partition=partition, local_test=0.5), NO_SERVER, seed=0)
    assert 0 in federation.samples
    assert federation.clients == 50


def test_the_partition_table_counts_every_sample_once() -> None:
    federation = federate(digits(local_test=0.2, partition={"name": "classes", "per_client": 2}), NO_SERVER, seed=0)
    table = federation.partition_table()
    assert [table[name].dtype for name in ("client", "label", "samples")] == [np.int32, np.int32, np.int64]
    assert (table["samples"] > 0).all()
    for split, rows in (("train", federation.train_rows(3)), ("test", federation.local_test(3)[1])):
        cells = (table["client"] == 3) & (table["split"] == split)
        labels, counts = np.unique(federation.train.y[rows], return_counts=True)
        assert labels.tolist() == table["label"][cells].tolist() == [3, 4]
        assert counts.tolist() == table["samples"][cells].tolist()


# Parts


def test_every_part_says_in_one_line_what_it_is() -> None:
    for kind in (*DATA_SETS, *SERVER_DATA):
        assert (kind.__doc__ or "").splitlines()[0].endswith((".", ":"))


def test_problems_are_those_of_the_partition() -> None:
    assert (
        "multiple"
        in digits(partition={"name": "classes", "per_client": 1, "assignment": "collins"}, clients=7).problems()[0]
    )
    assert not digits().problems()
    assert not part(name="quadratic", centers=[1]).problems()


def test_importing_the_parts_loads_no_heavy_library() -> None:
    heavy = {"torch", "torchvision", "sklearn", "pandas", "PIL", "ray"}
    code = f"import sys, raysim.data; print({heavy!r} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"
