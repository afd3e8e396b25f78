"""Folders with a file for each client: plain ones, and PFLlib's, whose pickles may run no code."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import digits

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
    assert loaded.train.y.tolist() == [0, 1, 1, 0, 0, 1] and loaded.test.columns["user"].tolist() == [0, 1]
    result = raysim.run(scenario, inline=True, out=tmp_path / "runs")
    assert result.pandas("updates").sort_values("client").samples.tolist() == [2, 1, 3]


class Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("touched"),)


def test_files_that_do_not_fit_are_refused_and_run_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    part = {"name": "client_files", "clients": 1}
    raw = {**digits(model="linear", algorithm="fedavg"), "world": {"dispatch": {"per_round": 1}}}

    def load(folder: str) -> Any:
        return raysim.parse_scenario({**raw, "data": {**part, "path": folder}}).data.load()

    write(tmp_path / "evil", False)
    np.savez(tmp_path / "evil/0.npz", data=np.array({"x": Evil()}, dtype=object))
    with pytest.raises(ValueError, match=r"evil/0.npz' must be .* names pathlib.*no array, .*; write x and y"):
        load("evil")
    assert not Path("touched").exists()
    write(tmp_path / "odd", False, a=([[1]], [0]), b=([[1, 2]], [0]))
    with pytest.raises(ValueError, match=r"odd/b.npz' must have samples of shape \(1,\)"):
        load("odd")
    np.savez(tmp_path / "odd/a.npz", x=np.ones(2), z=np.ones(2))
    with pytest.raises(ValueError, match=r"odd/a.npz' must have x and y, .*add 'y'"):
        load("odd")
    with pytest.raises(FileNotFoundError, match=r"must be a folder with an .npz file for each client"):
        load("nowhere")
