"""Data sets of torch, by import path."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import digits
from data_sets import load, part
from torch.utils.data import TensorDataset

import raysim
from raysim.data import Arrays
from raysim.data.sources.arrays import TorchDataset
from raysim.scenario.dependencies import changes, depends_on

MODULE = """
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

class Waves(Dataset):
    def __init__(self, samples=12, shift=0.0):
        self.samples, self.shift = samples, shift
    def __len__(self):
        return self.samples
    def __getitem__(self, place):
        return torch.arange(4.0) * place + self.shift, place % 3

def tensors(samples):
    return TensorDataset(torch.zeros(samples, 3, 5, 5), torch.arange(samples) % 2)

class Stream(IterableDataset):
    def __iter__(self):
        yield 1

class Triples(Waves):
    def __getitem__(self, place):
        return 1, 2, 3

class Broken(Waves):
    def __getitem__(self, place):
        raise ValueError("no such wave")

def mixed(kind):
    from PIL import Image
    if kind == "modes":
        return [(Image.new("RGB" if place else "L", (4, 4)), place % 2) for place in range(8)]
    picture = torch.zeros(3, 4, 4)
    return [(picture if place else picture.to(torch.uint8), place % 2) for place in range(8)]

def palette():
    from PIL import Image
    picture = Image.new("RGB", (4, 4), (10, 200, 30)).quantize(2)
    return [(picture, place % 2) for place in range(8)]
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waves.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "waves", raising=False)


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("modes", "resize them in a transform, and convert them to one mode"),
        ("bytes", "images must be bytes .* got uint8 in 'item 0' and float32 in 'item 1'; make them alike"),
    ],
)
def test_pictures_of_other_kinds_are_refused(kind: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        load(name="torch", train="waves:mixed", args={"kind": kind})


def test_a_class_is_read_with_its_arguments() -> None:
    waves = {"train": "waves:Waves", "test": "waves:Waves", "args": {"shift": 0.5}, "test_args": {"samples": 6}}
    dataset = load(name="torch", scale="unit", **waves)
    assert dataset.train.x[2].tolist() == [0.5, 2.5, 4.5, 6.5]
    assert (len(dataset.train), dataset.test.y.tolist(), dataset.num_classes) == (12, [0, 1, 2, 0, 1, 2], 3)


def test_a_class_may_be_given_itself() -> None:
    waves = importlib.import_module("waves").Waves
    data = part(name="torch", clients=2, partition="iid", train=waves, args={"samples": 5})
    assert data.model_dump(mode="json")["train"] == "waves:Waves"
    assert len(load(name="torch", train=waves, test=waves, args={"samples": 10}).train) == 10


def test_a_function_may_return_it_and_a_share_tests() -> None:
    dataset = load(name="torch", train="waves:tensors", args={"samples": 10})
    assert (dataset.train.x.shape, dataset.train.x.dtype, len(dataset.test)) == ((8, 3, 5, 5), np.float32, 2)


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"train": "waves:Nothing"}, r"`train` must be module:Class.*no attribute 'Nothing'"),
        ({"train": "waves:Stream"}, r"`train` must make a map-style Dataset.*got Stream of 'waves:Stream'"),
        ({"train": "waves:Triples"}, r"items of `train` must be pairs \(x, y\), got tuple for item 0"),
        ({"train": "waves:Broken"}, "no such wave"),
    ],
)
def test_what_is_no_such_data_set_is_told(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        load(name="torch", **keys)


def test_a_module_that_is_not_there_is_told_by_a_run(tmp_path: Path) -> None:
    data = {"name": "torch", "clients": 6, "partition": "iid", "train": "nowhere.at_all:Waves"}
    with pytest.raises(raysim.RunFailed, match=r"data.train: must be module:Class, .* No module named 'nowhere'"):
        raysim.run({**digits(), "data": data}, out=tmp_path, inline=True)


def test_a_change_of_its_module_makes_runs_out_of_date(tmp_path: Path) -> None:
    data = {"name": "torch", "clients": 6, "partition": "iid", "train": "waves:Waves"}
    scenario = raysim.parse_scenario({**digits(), "data": data})
    before = depends_on(scenario)
    with (tmp_path / "waves.py").open("a") as file:
        file.write("# changed")
    assert list(changes(before, depends_on(scenario))) == ["module waves changed"]


def test_a_picture_with_a_palette_has_its_colours() -> None:
    dataset = load(name="torch", train="waves:palette")
    assert (dataset.train.x.shape[1:], dataset.train.x[0, 0, 0].tolist()) == ((4, 4, 3), [10, 200, 30])


def test_dataset_objects_and_functions_are_taken_as_arrays_are(tmp_path: Path) -> None:
    x = torch.arange(120.0).reshape(40, 3)
    whole, rest = TensorDataset(x[:30], torch.arange(30) % 3), TensorDataset(x[30:], torch.arange(10) % 3)
    data = TorchDataset.of(whole, lambda: rest, clients=4, partition="iid")
    raw = digits(model="linear", world__dispatch__per_round=4) | {"data": data, "run": {"rounds": 2}}
    arrays = {"x_train": x[:30], "y_train": torch.arange(30) % 3, "x_test": x[30:], "y_test": torch.arange(10) % 3}
    same = raysim.run(raw | {"data": Arrays.of(arrays, clients=4, partition="iid")}, out=tmp_path, inline=True)
    assert raysim.run(raw, out=tmp_path, inline=True).digest == same.digest
    alone = TorchDataset.of(lambda: whole).load()
    assert len(alone.train) + len(alone.test) == 30
    with pytest.raises(ValueError, match="must make a map-style Dataset"):
        TorchDataset.of(iter([1]))
