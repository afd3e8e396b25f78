"""FedProx, by hand and against FedAvg."""

import pytest
from by_hand import final
from conftest import Simulate


@pytest.mark.parametrize(("weights", "expected"), [("samples", 2.0), ("uniform", 1.5)])
def test_fedprox_pulls_towards_the_received_model(simulate: Simulate, weights: str, expected: float) -> None:
    """mu = 1, n = (1, 3): after a step y = (0.5, 2.5), where the second step's gradients are 0."""
    algorithm = {"name": "fedprox", "mu": 1.0, "weights": weights}
    got = final(simulate, algorithm, 1, {"lr": 0.5, "steps": 2}, data__samples=[1, 3])
    assert got == pytest.approx([expected], abs=1e-6)
