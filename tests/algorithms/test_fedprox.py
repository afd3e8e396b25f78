"""FedProx, by hand and against FedAvg."""

import pytest
from by_hand import final
from conftest import Simulate, digits


@pytest.mark.parametrize(("weights", "expected"), [("samples", 2.0), ("uniform", 1.5)])
def test_fedprox_pulls_towards_the_received_model(simulate: Simulate, weights: str, expected: float) -> None:
    """mu = 1, n = (1, 3): after a step y = (0.5, 2.5), where the second step's gradients are 0."""
    algorithm = {"name": "fedprox", "mu": 1.0, "weights": weights}
    got = final(simulate, algorithm, 1, {"lr": 0.5, "steps": 2}, data__samples=[1, 3])
    assert got == pytest.approx([expected], abs=1e-6)


def test_fedprox_without_pull_is_fedavg(simulate: Simulate) -> None:
    """On real data, bit for bit."""
    world = {"dispatch": {"per_round": 6}}
    prox, plain, pulled = (
        simulate(digits(algorithm=algorithm, world=world)).info["digest"]["model"]
        for algorithm in ({"name": "fedprox", "mu": 0.0}, "fedavg", {"name": "fedprox", "mu": 0.01})
    )
    assert prox == plain != pulled
