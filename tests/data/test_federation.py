"""The federation that data become: what each client trains and tests on, who is unseen, and what is refused."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from command_line import command, write
from conftest import Raw, Simulate, digits
from data_sets import NO_SERVER, SERVER, federation, part
from data_sets import digits as part_of_digits
from refusals import told

import raysim
from raysim.data import Arrays, Federation, divided, federate
from raysim.data.dataset import held_out_size
from raysim.data.federation.server import NoServerData


def test_what_clients_train_and_test_on_is_each_client_s_own() -> None:
    federation = federate(
        part_of_digits(local_test=0.2, partition={"name": "dirichlet", "alpha": 0.5}), NO_SERVER, seed=3
    )
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
    first, again, other = (pickle.dumps(federate(part_of_digits(local_test=0.1), server, seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert isinstance(pickle.loads(first), Federation)


@pytest.mark.parametrize(
    ("samples", "share", "expected"),
    [(100, 0.0, 0), (100, 0.29, 29), (99, 0.1, 9), (5, 0.1, 1), (2, 0.01, 1), (1, 0.5, 0), (0, 0.5, 0), (4, 1.0, 3)],
)
def test_held_out_size_is_rounded_down_but_neither_nothing_nor_all(samples: int, share: float, expected: int) -> None:
    assert held_out_size(samples, share) == expected


def test_the_partition_table_counts_every_sample_once() -> None:
    federation = federate(
        part_of_digits(local_test=0.2, partition={"name": "classes", "per_client": 2}), NO_SERVER, seed=0
    )
    table = federation.partition_table()
    assert [table[name].dtype for name in ("client", "label", "samples")] == [np.int32, np.int32, np.int64]
    assert (table["samples"] > 0).all()
    for split, rows in (("train", federation.train_rows(3)), ("test", federation.local_test(3)[1])):
        cells = (table["client"] == 3) & (table["split"] == split)
        labels, counts = np.unique(federation.train.y[rows], return_counts=True)
        assert labels.tolist() == table["label"][cells].tolist() == [3, 4]
        assert counts.tolist() == table["samples"][cells].tolist()


def test_a_source_that_is_made_with_clients_says_who_holds_its_samples() -> None:
    arrays, keys = {"x": np.zeros((6, 2)), "y": np.arange(6) % 2}, {"clients": 2, "partition": "iid"}
    data = Arrays.of(arrays, **keys)
    assert data.clients == 2 and not Arrays.of(arrays).clients
    assert data == divided(Arrays.of(arrays), **keys) == pickle.loads(pickle.dumps(data))


def test_constants_by_hand(tmp_path: Path) -> None:
    found = federation()
    counts = np.bincount(found.test.y) / len(found.test)
    assert found.constant["accuracy"] == counts.max() and found.constant["samples"] == 359
    assert found.constant["loss"] == pytest.approx(-(counts * np.log(counts)).sum())
    x, several = np.arange(8.0)[:, None], np.tile([[0, 1, 1], [0, 0, 1]], (4, 1))
    for task, y, expected in (
        ("regression", np.array([0.0, 2.0] * 4), {"loss": 0.5}),  # half the variance of 0 and 2
        ("multi_label", several, {"accuracy": (1 + 0.5 + 1) / 3, "loss": np.log(2) / 3}),
    ):
        np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        keys = {"name": "arrays", "path": str(tmp_path / "a.npz"), "task": task, "clients": 2, "partition": "iid"}
        constant = federate(part(**keys), NoServerData(), 0).constant
        assert {key: constant[key] for key in expected} == pytest.approx(expected)


def test_unseen_clients_hold_samples_but_train_on_none() -> None:
    plain, divided = federation(), federation(unseen=0.25)
    assert divided.unseen.tolist() == [8, 9]
    assert divided.samples.tolist() == [*plain.samples[:8].tolist(), 0, 0]
    np.testing.assert_array_equal(divided.train_rows(9), plain.train_rows(9))
    np.testing.assert_array_equal(divided.training_rows, plain.held.rows[: plain.held.offsets[8]])
    assert divided.clients == 10
    assert len(federation(clients=100, unseen=0.29).unseen) == 29


def test_unseen_clients_are_never_picked_and_not_counted(simulate: Simulate) -> None:
    raw = digits(data__unseen=0.5, data__partition="iid", data__local_test=0.2, run__evaluate_on=["train"])
    raw |= {"algorithm": "fedavg", "world": {"dispatch": {"per_round": 15}}}
    result = simulate(raw)
    assert set(result.pandas("updates").client) == set(range(15))
    partition = result.pandas("partition")
    assert set(partition.client) == set(range(30))
    trained = partition.query("client < 15 and split == 'train'").samples.sum()
    assert set(result.pandas("evaluations").query("subject == 'global'").samples) == {trained}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"data__unseen": 1.0}, "data: `unseen` must leave a client of 30 that trains, got 1; lower it"),
        ({"data__unseen": 0.9}, "world.dispatch.per_round: must be at most the number of clients, 3, got 6"),
        ({"data__local_test": "train"}, "must be a number, got 'train', or must be 'test', got 'train'"),
    ],
)
def test_who_takes_no_part_must_leave_others(change: Raw, expected: str) -> None:
    assert expected in told(digits(**change))


@pytest.mark.parametrize("clients", [3, 7, 9, 11, 1_000_003])
def test_the_share_that_is_advised_makes_one_client_unseen(clients: int) -> None:
    (advice,) = part_of_digits(clients=clients, unseen=1e-8).division_problems()
    data = part_of_digits(clients=clients, unseen=float(advice.rpartition(" ")[2]))
    assert (data.division_problems(), data.participants) == ([], clients - 1)


# --- data and partitions of a user's own that are wrong ---------------------------------------------------------------


def refused(tmp_path: Path, raw: Raw, expected: str) -> None:
    """Asserts that all commands that load data say this of a scenario, and show no traceback."""
    path = write(tmp_path, raw)
    answer = command("check", path, "--data")
    assert (answer.exit_code, answer.stderr) == (2, f"{path}: {expected}\n")
    with pytest.raises(raysim.RunFailed) as failed:
        raysim.run(raw, out=tmp_path / "runs", inline=True)
    assert (str(failed.value), failed.value.traceback) == (f"load data: {expected}", "")


def broken(kind: str, name: str) -> Raw:
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
    block = broken("WrongData", name)
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
    block = broken("WrongPartition", name)
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
