"""Wrong labels of clients."""

import numpy as np
import pytest
from data_sets import federation

from raysim.data.holdings import Holdings
from raysim.data.noise import mislabel


def test_a_share_of_each_clients_labels_is_wrong() -> None:
    plain, noisy = federation(local_test=0.2), federation(local_test=0.2, label_noise=0.3)
    np.testing.assert_array_equal(noisy.held.rows, plain.held.rows)
    differ = noisy.train.y != plain.train.y
    for client in range(10):
        assert differ[noisy.train_rows(client)].sum() == round(0.3 * noisy.samples[client])
    assert not differ[noisy.held_out.rows].any()
    np.testing.assert_array_equal(noisy.test.y, plain.test.y)
    assert not np.array_equal(federation(seed=1, local_test=0.2, label_noise=0.3).train.y, noisy.train.y)


def test_each_other_label_is_as_likely() -> None:
    labels = np.full(9000, 2)
    wrong = mislabel(labels, Holdings.of([np.arange(9000)]), np.ones(1), 4, seed=0)
    assert (labels == 2).all()
    counts = np.bincount(wrong, minlength=4)
    assert counts[2] == 0
    assert counts[[0, 1, 3]] == pytest.approx(3000, abs=200)


def test_what_nobody_holds_keeps_its_labels() -> None:
    labels = np.arange(100) % 4
    wrong = mislabel(labels, Holdings.of([np.arange(10), np.arange(50, 60)]), np.ones(2), 4, seed=0)
    assert np.flatnonzero(wrong != labels).tolist() == [*range(10), *range(50, 60)]
