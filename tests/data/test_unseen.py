"""Clients that take no part in training."""

import numpy as np
import pytest
from conftest import Raw, Simulate, digits
from data_sets import digits as part_of_digits
from data_sets import federation

from raysim import ScenarioError, parse_scenario


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
    with pytest.raises(ScenarioError) as error:
        parse_scenario(digits(**change))
    assert expected in str(error.value)


@pytest.mark.parametrize("clients", [3, 7, 9, 11, 1_000_003])
def test_the_share_that_is_advised_makes_one_client_unseen(clients: int) -> None:
    (advice,) = part_of_digits(clients=clients, unseen=1e-8).division_problems()
    data = part_of_digits(clients=clients, unseen=float(advice.rpartition(" ")[2]))
    assert (data.division_problems(), data.participants) == ([], clients - 1)
