"""Files of TensorFlow Federated: texts of StackOverflow's columns, and images of federated EMNIST."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import DATA

from raysim.data.sources.subset import is_chosen
from raysim.data.sources.text import Text
from raysim.data.sources.tokenizers import Bytes

h5py = pytest.importorskip("h5py")


def write(file: Path, clients: dict[str, dict[str, Any]]) -> str:
    with h5py.File(file, "w") as content:
        for client, arrays in clients.items():
            for name, array in arrays.items():
                content[f"examples/{client}/{name}"] = array
    return str(file)


def test_stackoverflow_is_read_as_tensorflow_federated_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def posts(*texts: str) -> dict[str, Any]:
        same = {"creation_date": "2016-01-02", "title": "pip fails", "tags": "python|pip", "type": "question"}
        return {
            "tokens": [*texts],
            "score": [*range(len(texts))],
            **{key: [one] * len(texts) for key, one in same.items()},
        }

    write(tmp_path / "stackoverflow_train.h5", {"00000007": posts("how to", "why"), "00000012": posts("what is")})
    write(tmp_path / "stackoverflow_test.h5", {"00000012": posts("no")})
    write(tmp_path / "stackoverflow_held_out.h5", {"00000010": posts("unseen")})
    part = Text(path=str(tmp_path), text="tokens", clients="user")
    dataset = part.load()
    decode = Bytes().fitted([]).decode
    assert [decode(one) for one in dataset.train.x["input_ids"].tolist()] == ["how to", "why", "what is"]
    assert [decode(one) for one in dataset.test.x["input_ids"].tolist()] == ["no"]
    columns = dataset.train.columns
    assert columns["user"].tolist() == ["00000007", "00000007", "00000012"]
    assert is_chosen("00000012", 0.5) and not is_chosen("00000007", 0.5)
    half = part.model_copy(update={"user_share": 0.5}).load()
    assert (len(half.train), len(half.test)) == (1, 1)
    with pytest.raises(ValueError, match="got none; raise `user_share`"):
        part.model_copy(update={"user_share": 1e-9}).load()
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ValueError, match=r"`path` the package `h5py` must be there .*raysim-fl\[hdf5\]"):
        part.load()


def test_images_of_writers_are_those_of_clients(tmp_path: Path) -> None:
    pixels = np.linspace(0, 1, 2 * 28 * 28, dtype=np.float32).reshape(2, 28, 28)
    write(
        tmp_path / "fed_emnist_train.h5",
        {"b": {"pixels": pixels, "label": [0, 1]}, "a": {"pixels": pixels, "label": [1, 1]}},
    )
    write(tmp_path / "fed_emnist_test.h5", {"b": {"pixels": pixels, "label": [1, 0]}})
    keys = {"name": "client_files", "path": str(tmp_path), "clients": 2, "inputs": "images_first"}
    dataset = DATA.validate_python(keys).load()
    assert dataset.train.x.shape[0] == 4 and dataset.train.columns["file"].tolist() == [0, 0, 1, 1]
    assert dataset.train.y.tolist() == [1, 1, 0, 1] and dataset.test.columns["file"].tolist() == [1, 1]
    (tmp_path / "fed_emnist_test.h5").write_bytes(b"no")
    with pytest.raises(ValueError, match=r"fed_emnist_test.h5' must be a whole HDF5 file"):
        DATA.validate_python(keys).load()
