"""Data at URIs on an object store: every kind of file gives the samples that it gives on a disk."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from data_sets import part, random_images
from image_files import write_image
from object_store import s3_server

from raysim.data.sources.reading import matching
from raysim.models.pretrained import _read
from raysim.scenario.dependencies import fingerprint
from raysim.world.topology import _read_edges
from raysim.world.trace_availability import read_timetables
from results.location import copy_folder, location


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_server() as uri:
        yield uri


def npz(folder: Path) -> dict[str, Any]:
    x, y = random_images(20, 5, 5), np.arange(20) % 3
    np.savez(folder / "samples.npz", x_train=x, y_train=y, x_test=x[:6], y_test=y[:6])
    return {"name": "arrays", "path": "samples.npz", "inputs": "images_last"}


def table(folder: Path) -> dict[str, Any]:
    rows = pa.table({"a": np.arange(20.0), "b": np.arange(20.0) ** 2, "label": ["x", "y"] * 10})
    pa.csv.write_csv(rows, folder / "rows-1.csv")
    pq.write_table(rows, folder / "rows.parquet")
    return {"name": "table", "path": "rows-*.csv", "test_path": "rows.parquet", "label": "label"}


def images(folder: Path) -> dict[str, Any]:
    for place in range(8):
        write_image(folder / "pictures" / f"class-{place % 2}" / f"{place}.png", 20 * place)
    return {"name": "image_folder", "path": "pictures", "size": 4, "test_share": 0.25}


def mnist(folder: Path) -> dict[str, Any]:
    raw = folder / "sets" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, count in (("train", 12), ("t10k", 6)):
        pixels, labels = random_images(count, 28, 28), (np.arange(count) % 10).astype(np.uint8)
        head = b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in pixels.shape)
        (raw / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + pixels.tobytes()))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(
            b"\x00\x00\x08\x01" + count.to_bytes(4, "big") + labels.tobytes()
        )
    return {"name": "mnist", "root": "sets"}


def leaf(folder: Path) -> dict[str, Any]:
    for split in ("train", "test"):
        (folder / "leaf" / split).mkdir(parents=True)
        users = {user: {"x": [[0.5] * 784] * 3, "y": [1, 2, 3]} for user in ("u", "v")}
        (folder / "leaf" / split / "a.json").write_text(json.dumps({"user_data": users}))
    return {"name": "femnist", "path": "leaf"}


def saved(folder: Path) -> dict[str, Any]:
    datasets = pytest.importorskip("datasets")
    rows = {"x": [[0.0, 1.0], [1.0, 0.0]] * 5, "label": [0, 1] * 5}
    splits = datasets.DatasetDict({name: datasets.Dataset.from_dict(rows) for name in ("train", "test")})
    splits.save_to_disk(str(folder / "saved"))
    return {"name": "huggingface", "path": "saved", "input": "x"}


PATHS = ("path", "test_path", "root")
KINDS = [npz, table, images, mnist, leaf, saved]


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_samples_are_those_on_a_disk(bucket: str, tmp_path: Path, make: Any) -> None:
    settings, uri = make(tmp_path), f"{bucket}/{make.__name__}"
    copy_folder(tmp_path, location(uri))
    near, far = (
        part(clients=2, partition="iid", **{key: f"{root}/{value}" if key in PATHS else value for key, value in items})
        for root, items in ((tmp_path, settings.items()), (uri, settings.items()))
    )
    here, there = near.load(), far.load()
    for split in ("train", "test"):
        assert np.array_equal(getattr(here, split).x, getattr(there, split).x)
        assert np.array_equal(getattr(here, split).y, getattr(there, split).y)
    read = [str(path) for path in far.reads()]
    assert read
    assert all(path.startswith(uri) and fingerprint(path) for path in read)


def test_a_fingerprint_changes_with_what_is_there(bucket: str) -> None:
    folder = location(f"{bucket}/prints")
    assert fingerprint(str(folder)) is None
    (folder / "a" / "one").write_text("1")
    before = fingerprint(str(folder))
    assert before == fingerprint(str(folder)) is not None
    (folder / "a" / "one").write_text("2")
    assert fingerprint(str(folder)) != before
    assert fingerprint(str(folder / "a" / "one")) != fingerprint(str(folder))


def test_traces_scripts_edges_and_weights_may_be_there(bucket: str) -> None:
    import torch
    from safetensors.torch import save

    folder = location(f"{bucket}/world")
    (folder / "on.json").write_text(json.dumps({"0": {"active": [0, 5], "inactive": [2, 7], "finish_time": 9}}))
    (folder / "edges.txt").write_text("0 1\n1 2\n")
    (folder / "w.safetensors").write_bytes(save({"w": torch.ones(2)}))
    assert list(read_timetables(str(folder / "on.json"), None)) == [0]
    assert _read_edges(str(folder / "edges.txt")) == ((0, 1), (1, 2))
    assert _read(str(folder / "w.safetensors"))["w"].tolist() == [1, 1]
    assert matching(f"{folder}/*.txt") == [str(folder / "edges.txt")]
