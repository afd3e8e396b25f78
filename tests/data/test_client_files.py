"""Folders with a file for each client: plain ones, and PFLlib's, whose pickles may run no code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import digits
from data_sets import load

import raysim


def write(folder: Path, pfllib: bool, **files: tuple[list[Any], list[int]]) -> None:
    """Writes a file for each client. files: x and y by the file's name."""
    folder.mkdir(parents=True)
    for name, (x, y) in files.items():
        content = {"x": np.array(x, dtype=np.float32), "y": np.array(y)}
        saved: Any = {"data": np.array(content, dtype=object)} if pfllib else content
        np.savez_compressed(folder / f"{name.strip('_')}.npz", **saved)


@pytest.mark.parametrize("pfllib", [False, True])
def test_each_file_is_a_client_in_the_order_of_numbers(pfllib: bool, tmp_path: Path) -> None:
    rows = {"_0": ([[0, 1], [2, 3]], [0, 1]), "_2": ([[4, 5]], [1]), "_10": ([[6, 7]] * 3, [0, 0, 1])}
    write(tmp_path / "d/train", pfllib, **rows)
    write(tmp_path / "d/test", pfllib, _0=([[0, 1]], [0]), _2=([[1, 1]], [1]), _10=([], []))
    data = {"name": "client_files", "path": str(tmp_path / "d"), "clients": 3, "scale": "unit"}
    raw = digits(model="linear", algorithm="fedavg", run__rounds=1, run__evaluate_clients="all")
    raw = {**raw, "data": data, "world": {"dispatch": {"per_round": 3}}}
    scenario = raysim.parse_scenario(raw)
    loaded = scenario.data.load()
    assert loaded.train.x.tolist() == [[0, 1], [2, 3], [4, 5], *[[6, 7]] * 3]
    assert loaded.train.y.tolist() == [0, 1, 1, 0, 0, 1] and loaded.test.columns["file"].tolist() == [0, 1]
    result = raysim.run(scenario, inline=True, out=tmp_path / "runs")
    assert result.pandas("updates").sort_values("client").samples.tolist() == [2, 1, 3]


class Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("touched"),)


def test_files_that_do_not_fit_are_refused_and_run_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    part = {"name": "client_files", "clients": 1}
    raw = {**digits(model="linear", algorithm="fedavg"), "world": {"dispatch": {"per_round": 1}}}

    def loaded(folder: str) -> Any:
        return raysim.parse_scenario({**raw, "data": {**part, "path": folder}}).data.load()

    write(tmp_path / "evil", False)
    np.savez(tmp_path / "evil/0.npz", data=np.array({"x": Evil()}, dtype=object))
    with pytest.raises(ValueError, match=r"evil/0.npz' must be .* names pathlib.*not an array, .*; write x and y"):
        loaded("evil")
    assert not Path("touched").exists()
    write(tmp_path / "odd", False, a=([[1]], [0]), b=([[1, 2]], [0]))
    with pytest.raises(ValueError, match=r"odd/b.npz' must have x of shape \(1,\)"):
        loaded("odd")
    np.savez(tmp_path / "odd/a.npz", x=np.ones(2), z=np.ones(2))
    with pytest.raises(ValueError, match=r"odd/a.npz' must have x and y, .*add 'y'"):
        loaded("odd")
    with pytest.raises(FileNotFoundError, match=r"must be a folder with an .npz file for each client"):
        loaded("nowhere")


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    """A folder with the files of two clients, and with what systems leave."""
    for at in range(2):
        write(tmp_path / f"train/{at}", False, one=(np.arange(20.0).reshape(10, 2).tolist(), [0, 1] * 5))
        (tmp_path / f"train/{at}/one.npz").rename(tmp_path / f"train/{at}{('.npz', '.NPZ')[at]}")
        (tmp_path / f"train/{at}").rmdir()
    (tmp_path / "train/._0.npz").write_bytes(b"of a system")
    return tmp_path


def test_files_in_capital_letters_are_used_and_a_validation_folder_tests(clients: Path) -> None:
    assert len(found := load(name="client_files", path=str(clients)).train) == 16 and len({*found.columns["file"]}) == 2
    write(clients / "val", False, _0=([[1, 2]], [0]), _1=([[3, 4]], [1]))
    assert len(load(name="client_files", path=str(clients)).test) == 2
    write(clients / "test", False, _0=([[1, 2]], [0]))
    dataset = load(name="client_files", path=str(clients))
    assert len(dataset.test) == 1
    assert dataset.meaning is not None and dataset.meaning.unused == ("folder 'val'",)


@pytest.mark.parametrize(
    ("x", "y", "complaint"),
    [
        (None, np.zeros(10), "must say what y are, floats of 2 values"),
        (None, np.array(["0"] * 10), r"got int64 of '.*0.npz' and <U1 of '.*2.npz'; make them alike$"),
        (None, np.zeros((10, 2), int), r"2.npz' must have y of shape \(\), as .*0.npz' has, got \(2,\)"),
        (None, np.zeros((10, 1), np.uint64), None),
    ],
)
def test_files_of_other_kinds_are_named(clients: Path, x: Any, y: Any, complaint: str | None) -> None:
    """Without that, numpy makes one kind of all: floats of whole numbers, and texts of numbers."""
    x, y = np.ones((10, 2)) if x is None else x, np.zeros(10, int) if y is None else y
    np.savez(clients / "train/2.npz", x=x, y=y)
    if complaint is None:
        assert load(name="client_files", path=str(clients)).num_classes == 2
        return
    with pytest.raises(ValueError, match=complaint):
        load(name="client_files", path=str(clients))


def test_bytes_of_one_client_and_floats_of_another_are_refused(tmp_path: Path) -> None:
    pixels = np.arange(640).reshape(10, 8, 8) % 256
    for at, x in enumerate((pixels.astype(np.uint8), pixels / 255)):
        np.savez(tmp_path / f"{at}.npz", x=x, y=[0, 1] * 5)
    with pytest.raises(ValueError, match=r"got uint8 in '.*0.npz' and float64 in '.*1.npz'; make them alike"):
        load(name="client_files", path=str(tmp_path))
