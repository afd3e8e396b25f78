"""Data and partitions of a user's own that are wrong: what `check --data` and `run` say of them."""

from pathlib import Path

import pytest
from command_line import command, write
from conftest import Raw, digits

import raysim


def refused(tmp_path: Path, raw: Raw, expected: str) -> None:
    """Asserts that all commands that load data say this of a scenario, and show no traceback."""
    path = write(tmp_path, raw)
    answer = command("check", path, "--data")
    assert (answer.exit_code, answer.stderr) == (2, f"{path}: {expected}\n")
    with pytest.raises(raysim.RunFailed) as failed:
        raysim.run(raw, out=tmp_path / "runs", inline=True)
    assert (str(failed.value), failed.value.traceback) == (f"load data: {expected}", "")


def part(kind: str, name: str) -> Raw:
    """A class of a name of its own, or the one that is wrong in several ways."""
    return {"name": f"broken_parts:{name}"} if name[0].isupper() else {"name": f"broken_parts:{kind}", "wrong": name}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("tuple", "must return a raysim.data.Dataset, got tuple"),
        ("lists", "train: x must be a numpy array, got list"),
        ("double", "train: x must be uint8, int16, int32 or float32, got float64; convert it, with astype"),
        ("nan", "train: x must be finite, got nan in row 3"),
        ("shape", "x: must have the same shape in both splits, got {'train': (2,), 'test': (1,)}"),
        ("TooManyLabels", "train: labels must be 0 to 1, as num_classes says, got 0 to 2"),
        ("type", "x: must have the same type in both splits, got {'train': 'float32', 'test': 'int16'}"),
        ("numpy", "num_classes: must be an int, got int64; convert it, with int"),
        ("loss", "loss: must be one of cross_entropy, binary_cross_entropy, squared_error, quadratic, got 'hinge'"),
        ("users", "train: user must be a numpy array, got list"),
        ("classes", "classes: must be num_classes of what is loaded, 3, got 5"),
    ],
)
def test_what_data_load_must_fit_together(name: str, wrong: str, tmp_path: Path) -> None:
    block = part("WrongData", name)
    data = {**block, "clients": 6, "partition": "iid"}
    refused(tmp_path, {**digits(), "data": data}, f"data: {block['name']}.load: {wrong}")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("GivesTwice", "a row must go to one client at most, got [978] more than once"),
        ("GivesNothing", "client 0 must get samples, got none; give it some, or raise ValueError"),
        ("few", "must return a list with the rows of each of 6 clients, got 5"),
        ("beyond", "rows must be 0 to 1437, got 1438 for client 1"),
        ("floats", "rows must be arrays (n,) of int64, got float64 of shape (240,) for client 0"),
        ("nothing", "must return a list with the rows of each of 6 clients, got 'NoneType'"),
    ],
)
def test_a_partition_must_divide_the_samples(name: str, wrong: str, tmp_path: Path) -> None:
    block = part("WrongPartition", name)
    refused(tmp_path, digits(data__clients=6, data__partition=block), f"data.partition: {block['name']}.split: {wrong}")


def test_some_client_that_trains_must_get_samples(tmp_path: Path) -> None:
    """Here only the last of six, which is unseen, has any."""
    partition = {"name": "indices", "rows": [[]] * 5 + [[0, 1]]}
    data = {"name": "digits", "clients": 6, "unseen": 0.2, "local_test": 0.2, "partition": partition}
    raw = {**digits(world__dispatch={"per_round": 2}), "data": data}
    text = "a client that trains must get samples, got none for any of 5; give some to one of them at least"
    refused(tmp_path, raw, f"data.partition: {text}")


def test_clients_may_get_nothing_where_the_partition_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, digits(data__clients=6, data__partition="broken_parts:MayGiveNothing"))
    assert command("check", path, "--data").exit_code == 0
