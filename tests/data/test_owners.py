"""`clients` names who owns what: a column, a file or a folder, each value of which is a client."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import digits
from data_sets import part
from image_files import write_image

from raysim.data import federate
from raysim.data.federation.server import NoServerData
from raysim.data.loaded import load
from raysim.data.sources.shakespeare import Shakespeare
from raysim.data.sources.synthetic import LinearRegression
from raysim.parts.errors import ScenarioError
from raysim.scenario import parse_scenario

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
    raw = digits(data={**one_table(tmp_path), **keys}, model="mlp")
    with pytest.raises(ScenarioError) as error:
        parse_scenario(raw)
    (problem,) = error.value.problems
    assert problem.path == f"data.{at}" and text in problem.text


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
