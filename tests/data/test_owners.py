"""Partitions that are given, and clients that are the values of a column."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import digits
from data_sets import NO_SERVER, part
from data_sets import digits as data_of
from image_files import write_image
from refusals import problems

from raysim import parse_scenario
from raysim.data import Split, federate
from raysim.data.federation.given import Indices
from raysim.data.federation.server import NoServerData
from raysim.data.loaded import load
from raysim.data.sources.shakespeare import Shakespeare
from raysim.data.sources.synthetic import LinearRegression
from raysim.parts.rng import generator

ROWS = pd.DataFrame({"a": np.arange(24) / 7, "site": np.arange(24) % 3, "y": np.arange(24) % 2})


class Waves:
    """A data set of torch's kind, with writers."""

    writers = np.arange(30) % 5

    def __len__(self) -> int:
        return 30

    def __getitem__(self, row: int) -> tuple[np.ndarray, int]:
        return np.full(3, row, dtype=np.float32), row % 2


def tables(folder: Path) -> dict[str, Any]:
    for place, rows in ROWS.groupby("site"):
        (folder / f"hospital {place}").mkdir()
        rows[["a", "y"]].to_csv(folder / f"hospital {place}" / f"{place}.csv", index=False)
    return {"name": "table", "path": f"{folder}/*/*.csv", "label": "y"}


def one_table(folder: Path) -> dict[str, Any]:
    ROWS.to_csv(folder / "t.csv", index=False)
    return {"name": "table", "path": f"{folder}/t.csv", "label": "y"}


def arrays(folder: Path) -> dict[str, Any]:
    np.savez(folder / "a.npz", x=ROWS[["a"]], y=ROWS["y"], site=ROWS["site"])
    return {"name": "arrays", "path": f"{folder}/a.npz"}


def files(folder: Path) -> dict[str, Any]:
    for place, rows in ROWS.groupby("site"):
        np.savez(folder / f"{place}.npz", x=rows[["a"]], y=rows["y"])
    return {"name": "client_files", "path": str(folder), "local_test": 0.0}


def texts(folder: Path) -> dict[str, Any]:
    for place, rows in ROWS.groupby("site"):
        rows.assign(text="to be or not").to_json(folder / f"{place}.jsonl", orient="records", lines=True)
    return {"name": "text", "path": f"{folder}/*.jsonl"}


def pictures(folder: Path) -> dict[str, Any]:
    for place, kind, shade in [(p, k, s) for p in range(3) for k in "ab"[: p + 1] for s in range(8)]:
        write_image(folder / f"client_{place}" / kind / f"{shade}.png", 20 * shade)
    return {"name": "image_folder", "path": str(folder), "size": 4}


@pytest.mark.parametrize(
    ("make", "owner"),
    [
        (one_table, "site"),
        (tables, "file"),
        (tables, "folder"),
        (arrays, "site"),
        (files, "file"),
        (texts, "file"),
        (pictures, "folder"),
    ],
)
def test_each_value_of_the_column_is_a_client(make: Any, owner: str, tmp_path: Path) -> None:
    keys = make(tmp_path)
    data = part(**keys, clients=owner)
    assert data == part(**keys, clients=3, partition={"name": "natural", "by": owner})
    found = federate(data, NoServerData(), 0)
    assert found.held.clients == 3 and found.held.sizes.sum() == len(found.train)
    owners = found.train.columns[owner]
    assert [len({*owners[found.held[client]].tolist()}) for client in range(3)] == [1, 1, 1]


def test_a_feature_is_none_of_the_owners(tmp_path: Path) -> None:
    assert part(**one_table(tmp_path), clients="site").load().meaning.inputs.names == ("a",)
    assert part(**one_table(tmp_path), clients=2, partition="iid").load().meaning.inputs.names == ("a", "site")


def test_attributes_of_a_torch_data_set_are_columns() -> None:
    data = part(name="torch", train="test_owners:Waves", clients="writers")
    assert data.clients == 5 and sorted({*data.load().train.columns["writers"].tolist()}) == [*range(5)]
    with pytest.raises(ValueError, match="must have an attribute 'readers' with a value for each of 30 samples"):
        part(name="torch", train="test_owners:Waves", clients="readers")


@pytest.mark.parametrize(
    ("keys", "at", "text"),
    [
        ({"clients": "town"}, "clients", "must have a column 'town', got ['a', 'site', 'y']"),
        ({"clients": "sit"}, "clients", "(did you mean 'site'?); correct the name, or give the number of clients"),
        ({"clients": "site", "label": "why"}, "label", "must have a column 'why', got ['a', 'site', 'y']"),
        ({"clients": "site", "categorical": ["b"]}, "categorical", "must name features, got 'b', which are 'a'; corr"),
        ({"clients": "site", "partition": "iid"}, "partition", "must be left out where `clients` names a column, got"),
        ({"clients": "site", "path": "none.csv"}, "path", "must match a file, but 'none.csv' matches none"),
        ({"clients": "site", "pth": 3}, "pth", "unknown key"),
    ],
)
def test_what_cannot_be_counted_is_a_problem_of_its_key(
    keys: dict[str, Any], at: str, text: str, tmp_path: Path
) -> None:
    ((path, told),) = problems(digits(data={**one_table(tmp_path), **keys}, model="mlp")).items()
    assert path == f"data.{at}" and text in told


def test_files_of_one_name_are_no_clients(tmp_path: Path) -> None:
    keys = tables(tmp_path)
    (tmp_path / "hospital 1" / "1.csv").rename(tmp_path / "hospital 1" / "0.csv")
    with pytest.raises(ValueError, match="must be files of different names, got one twice; take `clients: folder`"):
        part(**keys, clients="file")


def test_every_source_uses_as_many_samples_as_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "play.txt").write_text("\n\n".join(f"{who}:\n{'to be or not to be ' * 9}" for who in "AB"))
    for source in (
        Shakespeare(path=str(tmp_path / "play.txt"), length=8, train_samples=5, test_samples=3),
        LinearRegression(samples=20, features=2, train_samples=5, test_samples=3),
    ):
        whole, dataset = load(source.model_copy(update={"train_samples": None, "test_samples": None})), load(source)
        assert (len(dataset.train), len(dataset.test)) == (5, 3)
        assert np.array_equal(dataset.train.x, whole.train.x[:5]) and np.array_equal(dataset.test.y, whole.test.y[:3])
    with pytest.raises(ValueError, match="`train_samples` must be at most 20, the number of samples, got 21"):
        load(LinearRegression(samples=20, features=2, train_samples=21))


SPLIT = Split(np.zeros((6, 2), np.float32), np.arange(6) % 2)
PARTS = [[0, 3], [1], [5, 4]]


def divided(partition: Indices, clients: int = 3) -> list[list[int]]:
    return [rows.tolist() for rows in partition.split(SPLIT, clients, generator(0, "partition"))]


def test_every_form_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps(PARTS))
    assert divided(Indices(path=str(tmp_path / "list.json"))) == PARTS
    np.savez(tmp_path / "b.npz", client=[0, 1, -1, 0, 2, 2])
    assert divided(Indices(path=str(tmp_path / "b.npz"))) == [[0, 3], [1], [4, 5]]
    assert divided(Indices.model_validate({"rows": [np.array(part) for part in PARTS]})) == PARTS


def test_a_sample_may_be_held_twice_if_that_is_allowed() -> None:
    assert divided(Indices(rows=((0, 1), (1,)), overlap=True), 2) == [[0, 1], [1]]
    shared = {"name": "indices", "rows": [[*range(9)], [*range(5, 20)]], "overlap": True}
    server = {"name": "in_domain", "samples": 12, "split": "train"}
    federation = federate(data_of(clients=2, partition=shared, local_test="test"), NO_SERVER, seed=0)
    assert federation.samples.tolist() == [9, 15]
    assert parse_scenario(
        digits(data__clients=2, data__partition=shared, server_data=server, world__dispatch={"per_round": 1})
    ).data.partition.overlap


@pytest.mark.parametrize(
    ("rows", "clients", "complaint"),
    [
        (((0, 6),), 1, r"rows must be 0 to 5, got 6 for client 0; correct `rows`"),
        (((0, 1), (1,)), 2, r"a row must go to one client at most, got \[1\] more than once; .* `overlap: true`"),
        (((0,), (1,)), 3, r"data.clients: must be the number of lists, 2, got 3"),
    ],
)
def test_rows_that_do_not_fit_are_errors(rows: Any, clients: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        divided(Indices(rows=rows), clients)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.json", b"[[0, 1", r"a.json' must be a whole JSON file, got 6 bytes, of which JSONDecodeError says"),
        ("a.json", b'[[0, "x"]]', r"rows of client 0 must be a list of whole numbers, got"),
        ("a.json", b"3", r"must hold a list of lists, got int"),
        ("a.npz", b"PK", r"a.npz' must be a whole .npz file"),
        ("a.txt", b"", r"`path` must be a .json or .npz file that exists, got"),
    ],
)
def test_files_that_do_not_fit_are_errors(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=complaint):
        divided(Indices(path=str(tmp_path / name)))
