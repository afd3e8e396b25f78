"""A client's part of the test split."""

import numpy as np
import pytest
from conftest import Simulate, digits
from data_sets import federation

from raysim.data import Split
from raysim.data.federation.holdings import divide_alike, hold_out
from raysim.parts.rng import generator


def labelled(labels: list[int], **columns: list[int]) -> Split:
    y = np.array(labels, dtype=np.int64)
    return Split(np.zeros((len(y), 1), np.float32), y, {name: np.array(values) for name, values in columns.items()})


def parts_of(*rows: list[int]) -> list[np.ndarray]:
    return [np.array(of_client, dtype=np.int64) for of_client in rows]


def test_a_client_never_trains_on_what_it_tests_on_though_it_holds_it_twice() -> None:
    held, held_out = hold_out(parts_of([0, 0, 1, 1, 2, 3], [3, 4], [5, 5]), 0.5, seed=0)
    assert held_out.sizes.tolist() == [2, 1, 0]
    for client, rows in enumerate([{0, 1, 2, 3}, {3, 4}, {5}]):
        assert set(held[client]) == rows - set(held_out[client])
    assert held[2].tolist() == [5, 5]


def test_labels_of_the_test_split_are_cut_in_the_proportions_of_the_training_split() -> None:
    """Clients hold 2, 1 and 1 of 4 samples of label 0, which 8 test; the last holds all of label 1, which 3 test."""
    train, test = labelled([0, 0, 0, 0, 1, 1]), labelled([0] * 8 + [1] * 3)
    tests = divide_alike(train, parts_of([0, 1], [2], [3, 4, 5]), test, "label", generator(0, "tests"))
    counts = [np.bincount(test.y[rows], minlength=2).tolist() for rows in tests]
    assert counts == [[4, 0], [2, 0], [2, 3]]
    assert np.sort(tests.rows).tolist() == list(range(11))


def test_cuts_are_rounded_down_and_give_all_to_those_who_hold_some() -> None:
    """Thirds of ten: 3, 3 and 4; the last client holds nothing, and gets nothing."""
    train, test = labelled([0, 0, 0]), labelled([0] * 10)
    tests = divide_alike(train, parts_of([0], [1], [2], []), test, "label", generator(0, "tests"))
    assert [len(rows) for rows in tests] == [3, 3, 4, 0]


def test_test_samples_of_what_nobody_holds_are_nobodys() -> None:
    train, test = labelled([0, 1, 2]), labelled([0, 1, 2, 3])
    tests = divide_alike(train, parts_of([0], [2]), test, "label", generator(0, "tests"))
    assert [rows.tolist() for rows in tests] == [[0], [2]]


def test_users_get_their_own_test_samples() -> None:
    train = labelled([0, 1, 0, 1], user=[7, 7, 5, 6])
    test = labelled([1, 1, 0, 0, 1], user=[5, 7, 7, 8, 6])
    tests = divide_alike(train, parts_of([2], [0, 1]), test, "user", generator(0, "tests"))
    assert [sorted(rows.tolist()) for rows in tests] == [[0], [1, 2]]


def test_test_samples_without_the_column_are_told_as_such() -> None:
    train = labelled([0, 0, 1], user=[5, 6, 6])
    with pytest.raises(ValueError, match=r"local_test: must be a share, .* because the test samples have no column"):
        divide_alike(train, parts_of([0], [1, 2]), labelled([0, 1]), "user", generator(0, "tests"))


@pytest.mark.parametrize("assignment", ["cyclic", "collins"])
def test_clients_with_blocks_of_labels_test_on_blocks_of_the_same_labels(assignment: str) -> None:
    partition = {"name": "classes", "per_client": 2, "assignment": assignment}
    divided = federation(partition=partition, local_test="test", train_samples=1000, test_samples=200)
    assert divided.samples.tolist() == [100] * 10
    for client in range(10):
        split, rows = divided.local_test(client)
        assert split is divided.test
        trained = np.bincount(divided.train.y[divided.train_rows(client)], minlength=10)
        assert trained.tolist() == (5 * np.bincount(split.y[rows], minlength=10)).tolist()
    assert len(np.unique(divided.held_out.rows)) == 200


def test_what_is_nobodys_test_does_not_evaluate() -> None:
    """Five clients with a label each: the test samples of five labels are left."""
    divided = federation(clients=5, partition={"name": "classes", "per_client": 1}, local_test="test")
    assert set(divided.test.y[divided.evaluation_rows]) == {0, 1, 2, 3, 4}
    np.testing.assert_array_equal(np.sort(divided.held_out.rows), divided.evaluation_rows)


def test_public_samples_of_the_test_split_are_no_clients_test() -> None:
    divided = federation(local_test="test", public={"samples": 100, "split": "test"})
    assert len(divided.evaluation_rows) == 259
    np.testing.assert_array_equal(np.sort(divided.held_out.rows), divided.evaluation_rows)


def test_clients_are_evaluated_on_their_part_of_the_test_split(simulate: Simulate) -> None:
    raw = digits(data__local_test="test", run__evaluate_clients="all", run__rounds=2)
    evaluations = simulate(raw).pandas("evaluations").query("metric == 'accuracy' and step == step.max()")
    clients = evaluations.query("subject == 'client'")
    (of_global,) = evaluations.query("subject == 'global'").itertuples()
    assert clients.samples.sum() == of_global.samples == 359
    together = (clients.value * clients.samples).sum() / 359  # every client has the server's model here
    assert together == pytest.approx(of_global.value)
