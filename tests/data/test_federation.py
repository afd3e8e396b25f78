"""The federation that data become: what each client trains and tests on."""

import pickle

import numpy as np
import pytest
from data_sets import NO_SERVER, SERVER, digits

from raysim.data import Arrays, Federation, divided, federate
from raysim.data.sources.subset import held_out_size


def test_what_clients_train_and_test_on_is_each_client_s_own() -> None:
    federation = federate(digits(local_test=0.2, partition={"name": "dirichlet", "alpha": 0.5}), NO_SERVER, seed=3)
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
    first, again, other = (pickle.dumps(federate(digits(local_test=0.1), server, seed)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert isinstance(pickle.loads(first), Federation)


@pytest.mark.parametrize(
    ("samples", "share", "expected"),
    [(100, 0.0, 0), (100, 0.29, 29), (99, 0.1, 9), (5, 0.1, 1), (2, 0.01, 1), (1, 0.5, 0), (0, 0.5, 0), (4, 1.0, 3)],
)
def test_held_out_size_is_rounded_down_but_neither_nothing_nor_all(samples: int, share: float, expected: int) -> None:
    assert held_out_size(samples, share) == expected


def test_clients_may_have_no_samples() -> None:
    partition = {"name": "dirichlet", "alpha": 0.001, "min_size": 0, "cap": False}
    federation = federate(digits(clients=50, partition=partition, local_test=0.5), NO_SERVER, seed=0)
    assert 0 in federation.samples
    assert federation.clients == 50


def test_the_partition_table_counts_every_sample_once() -> None:
    federation = federate(digits(local_test=0.2, partition={"name": "classes", "per_client": 2}), NO_SERVER, seed=0)
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
