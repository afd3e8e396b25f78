"""Samples that users bring from Python: arrays, in .npz files and in memory, and data sets of torch."""

import importlib
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from command_line import command
from conftest import Raw, digits, override
from data_sets import load, part
from same_bits import same_on_ray
from torch.utils.data import TensorDataset

import raysim
from raysim import parse_scenario
from raysim.data.sources.arrays import Arrays, TorchDataset
from raysim.data.sources.in_memory import InMemory, without_arrays
from raysim.parts.rng import generator
from raysim.scenario.dependencies import changes, depends_on

DRAW = generator(0, "arrays")
X, Y = DRAW.standard_normal((60, 5)), np.arange(60) % 3


def npz(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def blobs() -> dict[str, np.ndarray]:
    """Three clouds of points, which a linear model tells apart, with the owner of each training sample."""
    draw = generator(1, "blobs")
    y = draw.integers(3, size=400)
    x = draw.standard_normal((400, 4)) + 3 * np.eye(4)[y]
    return {"x_train": x[:300], "y_train": y[:300], "x_test": x[300:], "y_test": y[300:], "site_train": y[:300] % 2}


def scenario(data: Raw, **more: Any) -> Raw:
    raw = digits(model="linear", run__rounds=4, run__evaluate_every=2, world__dispatch={"per_round": 3}, **more)
    return {**raw, "data": {"clients": 6, "partition": "iid", **data}}


def test_large_numbers_are_standardised_before_they_are_rounded(tmp_path: Path) -> None:
    """A float32 of 1.6e9 is a multiple of 128. Splits need not have one type."""
    times = np.arange(1_600_000_000, 1_600_000_060)
    for x in (times, times.astype(np.float64)):
        path = npz(tmp_path / "a.npz", x_train=x, y_train=Y, x_test=times[:9].astype(np.float32), y_test=Y[:9])
        dataset = load(name="arrays", path=path)
        np.testing.assert_allclose(dataset.train.x[:, 0], (np.arange(60) - 29.5) / np.arange(60).std(), rtol=1e-6)
        assert dataset.train.x.dtype == dataset.test.x.dtype == np.float32


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"y_test": Y[:9] + 7}, r"labels of test samples must be labels of training samples, got 9 that are not, such"),
        ({"x_test": X[:9, :4]}, r"test inputs must be as the training inputs, float64 of shape \(5,\), got .*\(4,\)"),
        ({"y_train": Y[:8]}, r"must have a row for each sample, got shapes \{'x_train': \(9, 5\), 'y_train': \(8,\)\}"),
        ({"x_train": np.full((9, 5), np.nan)}, r"training inputs must be finite, got 45 values that are not"),
        ({"x_train": np.array(list("abcdefghi"))}, r"training inputs must be an array of numbers.*got <U1"),
    ],
)
def test_arrays_that_are_no_samples_are_errors(tmp_path: Path, changed: dict[str, Any], complaint: str) -> None:
    arrays = {"x_train": X[:9], "y_train": Y[:9], "x_test": X[:9], "y_test": Y[:9], **changed}
    with pytest.raises(ValueError, match=complaint):
        load(name="arrays", path=npz(tmp_path / "a.npz", **arrays))


def test_labels_of_one_split_and_floats_of_the_other_must_be_said() -> None:
    x, y = np.zeros((4, 2)), np.arange(4) % 2
    data = Arrays.of({"x_train": x, "y_train": y, "x_test": x, "y_test": y * 1.0})
    with pytest.raises(ValueError, match="must say what y are, whole numbers of 2 values"):
        data.load()
    assert data.model_copy(update={"task": "classes"}).load().num_classes == 2


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_text_in_memory_is_no_label_of_its_own(missing: Any) -> None:
    with pytest.raises(ValueError, match="must have a value everywhere, got 1 missing ones"):
        InMemory.of(pd.Series(["ash", missing, "elm"]))


def test_python_objects_are_refused_without_the_advice_to_load_them(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}, None], dtype=object)
    np.savez(tmp_path / "a.npz", x=objects, y=Y[:2])  # type: ignore[arg-type]
    (tmp_path / "b.npz").write_bytes(pickle.dumps({"x": [1.0], "y": [0]}))
    for name, says in (
        ("a.npz", "it holds Python objects; make numbers"),
        ("b.npz", "File is not a zip file; write it"),
    ):
        with pytest.raises(ValueError, match=f"says: {says}") as told:
            load(name="arrays", path=str(tmp_path / name))
        assert "allow_pickle" not in str(told.value)


def test_a_file_that_lacks_an_array_or_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    path = Path(npz(tmp_path / "a.npz", x_train=X, y_train=Y, x_test=X))
    with pytest.raises(ValueError, match=r"got \['x_test', 'x_train', 'y_train'\]; add 'y_test'"):
        load(name="arrays", path=str(path))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match=r"a.npz' must be a whole .npz file .* got 500 bytes, of which BadZip"):
        load(name="arrays", path=str(path))
    with pytest.raises(FileNotFoundError, match=r"`path` must be an .npz file, but '.*nowhere.npz' is not there"):
        load(name="arrays", path="nowhere.npz")


def test_either_a_file_or_arrays() -> None:
    for wrong in ({}, {"path": "a.npz", "arrays": {"x": X, "y": Y}}):
        with pytest.raises(ValueError, match="must have exactly one of `path` and `arrays`"):
            part(name="arrays", clients=2, partition="iid", **wrong)


def test_arrays_in_a_file_and_in_memory_give_one_run(tmp_path: Path) -> None:
    """And what run.json keeps of arrays is read by `show` and `compare`, and cannot be run again."""
    arrays = blobs()
    path = npz(tmp_path / "blobs.npz", **arrays)
    partition = {"name": "dirichlet_clients", "alpha": 0.5, "sizes": {"name": "log_normal", "sigma": 0.8}}
    raw = scenario({"name": "arrays", "path": path, "partition": partition, "local_test": 0.2})
    in_memory = override(raw, data={"name": "arrays", "clients": 6, "partition": partition, "local_test": 0.2})
    in_memory["data"]["arrays"] = arrays
    runs = [raysim.run(parse_scenario(each), out=tmp_path / "runs", inline=True) for each in (raw, in_memory)]
    assert runs[0].digest == runs[1].digest
    assert runs[1].pandas("evaluations").query("split == 'test'")["value"].iloc[-1] > 0
    kept = json.loads((runs[1].folder / "run.json").read_text())["scenario"]["data"]["arrays"]
    assert kept["x_train"] == {"shape": [300, 4], "dtype": "float64", "hash": InMemory.of(arrays["x_train"]).hash}
    assert (runs[1].folder / "run.json").stat().st_size < 20_000
    assert command("show", runs[1].folder).exit_code == 0
    assert command("compare", *(run.folder for run in runs)).exit_code == 0
    assert runs[1].module() is not None
    again = parse_scenario(runs[1].info["scenario"])
    with pytest.raises(raysim.RunFailed, match=r"data.arrays: must be given from Python again"):
        raysim.run(again, out=tmp_path / "again", inline=True)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.slow
def test_arrays_in_memory_give_the_same_bits_on_ray(tmp_path: Path) -> None:
    data = {"name": "arrays", "arrays": blobs(), "label_noise": [0.1] * 6, "skew": {"name": "noise", "sigma": 0.5}}
    same_on_ray(scenario(data), tmp_path)


def test_workers_get_the_scenario_without_the_arrays() -> None:
    given = parse_scenario(
        scenario({"name": "arrays", "arrays": {"x": np.zeros((50_000, 20)), "y": np.arange(50_000) % 9}})
    )
    lighter = without_arrays(given)
    assert len(pickle.dumps(lighter)) < 20_000 < 8_000_000 < len(pickle.dumps(given))
    assert lighter.hash == given.hash
    assert lighter == given


def test_the_hash_of_a_scenario_follows_the_values_of_arrays() -> None:
    one, same, other = (
        parse_scenario(scenario({"name": "arrays", "arrays": {"x": x, "y": Y}})).hash for x in (X, X.copy(), X + 1)
    )
    assert one == same != other


def test_tensors_series_and_frames_are_arrays_too() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    data = Arrays.of({"x": frame, "y": pd.Series(np.array(list("abc"))[Y])})
    tensors = Arrays.of({"x": torch.tensor(X), "y": torch.tensor(Y)})
    assert data.load().num_classes == tensors.load().num_classes == 3
    np.testing.assert_array_equal(data.load().train.x, tensors.load().train.x)


def test_arrays_of_objects_are_what_they_hold() -> None:
    assert InMemory.of(X.astype(object)) == InMemory.of(X)
    assert InMemory.of(Y.astype(object)) == InMemory.of(Y)


@pytest.mark.parametrize("user", [np.where(Y, Y, np.nan), np.array(["", "a", "b"])[Y]])
def test_a_missing_owner_is_no_owner(user: np.ndarray) -> None:
    row = int((Y == 0).argmax())
    with pytest.raises(ValueError, match=f"'user' must have a value in every row, got none in row {row}; fill it"):
        load(name="arrays", arrays={"x": X, "y": Y, "user": user})
    column = load(name="arrays", arrays={"x": X, "y": Y, "user": Y[:, None]}).train.columns["user"]
    assert column.shape == (len(column),)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("t.csv", "take data of the name `table`"),
        ("t.npy", "with numpy.savez"),
        ("t.pt", "such as 't/data.pkl'; write x"),
    ],
)
def test_files_of_other_kinds_are_no_archives_of_arrays(tmp_path: Path, name: str, cure: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    np.save(tmp_path / "t.npy", X)
    torch.save({"x": torch.zeros(2)}, tmp_path / "t.pt")
    with pytest.raises(ValueError, match=rf"{name}' must be a whole .npz file of arrays .*{re.escape(cure)}"):
        load(name="arrays", path=str(tmp_path / name))


def test_arrays_that_are_not_used_are_said_and_those_of_splits_beside_all_samples_refused() -> None:
    of_splits = {f"{name}_{split}": value for split in ("train", "test", "val") for name, value in (("x", X), ("y", Y))}
    beside = {"names_train": np.array(["a", "b", "c"]), "version": np.array(3)}
    dataset = load(name="arrays", arrays={**of_splits, **beside})
    assert dataset.meaning is not None
    assert dataset.meaning.unused == ("x_val", "y_val", "version", "names_train")
    with pytest.raises(
        ValueError, match=r"got 'x_test' beside y; call these x_train and y_train, or remove one of them"
    ):
        load(name="arrays", arrays={"x": X, "y": Y, "x_test": X[:5] + 1, "y_test": Y[:5]})
    with pytest.raises(ValueError, match=r"add 'x_train', or rename X_train to that"):
        load(name="arrays", arrays={"X_train": X, "y_train": Y, "X_test": X, "y_test": Y})


# --- data sets of torch -----------------------------------------------------------------------------------------------


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


@pytest.fixture
def waves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waves.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "waves", raising=False)


@pytest.mark.usefixtures("waves")
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


@pytest.mark.usefixtures("waves")
def test_a_class_is_read_with_its_arguments() -> None:
    waves = {"train": "waves:Waves", "test": "waves:Waves", "args": {"shift": 0.5}, "test_args": {"samples": 6}}
    dataset = load(name="torch", scale="unit", **waves)
    assert dataset.train.x[2].tolist() == [0.5, 2.5, 4.5, 6.5]
    assert (len(dataset.train), dataset.test.y.tolist(), dataset.num_classes) == (12, [0, 1, 2, 0, 1, 2], 3)


@pytest.mark.usefixtures("waves")
def test_a_class_may_be_given_itself() -> None:
    waves = importlib.import_module("waves").Waves
    data = part(name="torch", clients=2, partition="iid", train=waves, args={"samples": 5})
    assert data.model_dump(mode="json")["train"] == "waves:Waves"
    assert len(load(name="torch", train=waves, test=waves, args={"samples": 10}).train) == 10


@pytest.mark.usefixtures("waves")
def test_a_function_may_return_it_and_a_share_tests() -> None:
    dataset = load(name="torch", train="waves:tensors", args={"samples": 10})
    assert (dataset.train.x.shape, dataset.train.x.dtype, len(dataset.test)) == ((8, 3, 5, 5), np.float32, 2)


@pytest.mark.usefixtures("waves")
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


@pytest.mark.usefixtures("waves")
def test_a_change_of_its_module_makes_runs_out_of_date(tmp_path: Path) -> None:
    data = {"name": "torch", "clients": 6, "partition": "iid", "train": "waves:Waves"}
    scenario = raysim.parse_scenario({**digits(), "data": data})
    before = depends_on(scenario)
    with (tmp_path / "waves.py").open("a") as file:
        file.write("# changed")
    assert list(changes(before, depends_on(scenario))) == ["module waves changed"]


@pytest.mark.usefixtures("waves")
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
