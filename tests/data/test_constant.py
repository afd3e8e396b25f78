"""What the best constant prediction scores on test samples, beside which runs are compared."""

from pathlib import Path

import numpy as np
import pytest
from data_sets import federation, part

from raysim.data import federate
from raysim.data.federation.server import NoServerData


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
