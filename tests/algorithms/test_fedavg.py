"""FedAvg, FedProx and Ditto: by hand, and where they are the same."""

import pytest
import torch
from by_hand import final, scripted, x
from conftest import Simulate, quadratic
from plain_run import PlainRun

from raysim import ScenarioError, parse_scenario


@pytest.mark.parametrize(
    ("weights", "both", "one"),
    [("samples", 2.0, 2.5), ("uniform", 1.5, 2.5), ("population", 2.0, 2.125), ("scaled", 2.0, 3.75)],
)
def test_fedavg_averages_by_weights(simulate: Simulate, weights: str, both: float, one: float) -> None:
    """n = (1, 3), y = (0.5, 2.5); or client 1 reports alone, and client 0 is late and discarded."""
    for delays, expected in (([[0.0], [0.0]], both), ([[1.0], [0.0]], one)):
        algorithm, world = {"name": "fedavg", "weights": weights}, scripted([[0, 1]], delays)
        raw = quadratic([0.0, 4.0], algorithm, world, 1, start=1.0, data__samples=[1, 3], local__lr=0.5)
        assert x(simulate, raw) == pytest.approx(expected, abs=1e-6)


def test_expected_weights_divide_by_the_mean_number_of_clients(simulate: Simulate) -> None:
    """Each of 4 clients is picked with probability 1/2, so a difference counts 1 / 2; those of (4 i - 1) / 2."""
    algorithm = {"name": "fedavg", "weights": "expected"}
    raw = quadratic(
        [0.0, 4.0, 8.0, 12.0], algorithm, {"dispatch": {"probability": 0.5}}, 1, start=1.0, seed=5, local__lr=0.5
    )
    picked = simulate(raw).table("updates")["client"].to_pylist()
    assert 0 < len(picked) != 2
    assert x(simulate, raw) == pytest.approx(1 + sum((4 * client - 1) / 2 for client in picked) / 2, abs=1e-6)


def test_expected_weights_of_all_clients_are_uniform_ones(simulate: Simulate) -> None:
    raws = (
        quadratic([0.0, 4.0], {"name": "fedavg", "weights": weights}, {"dispatch": {"probability": 1.0}}, 3, start=1.0)
        for weights in ("uniform", "expected")
    )
    one, other = (simulate(raw).digest for raw in raws)
    assert one == other


def test_expected_weights_need_a_probability() -> None:
    raw = quadratic([0.0], {"name": "fedavg", "weights": "expected"}, {"dispatch": {"per_round": 1}}, 1)
    with pytest.raises(ScenarioError, match=r"algorithm.weights: must not be expected .*; take uniform"):
        parse_scenario(raw)


@pytest.mark.parametrize(("weights", "expected"), [("samples", 2.0), ("uniform", 1.5)])
def test_fedprox_pulls_towards_the_received_model(simulate: Simulate, weights: str, expected: float) -> None:
    """mu = 1, n = (1, 3): after a step y = (0.5, 2.5), where the second step's gradients are 0."""
    algorithm = {"name": "fedprox", "mu": 1.0, "weights": weights}
    got = final(simulate, algorithm, 1, {"lr": 0.5, "steps": 2}, data__samples=[1, 3])
    assert got == pytest.approx([expected], abs=1e-6)


@pytest.mark.parametrize(("start", "own"), [("own", 1.0), ("global", 0.375)])
def test_ditto_pulls_towards_the_received_model(start: str, own: float) -> None:
    """f = x^2 / 2, w = 1, v = 3, lambda = 0.5, a step of 0.5; the update is 0.5 - 1."""
    algorithm = {"name": "ditto", "lam": 0.5, "start": start}
    raw = quadratic([0.0], algorithm, {"dispatch": {"per_round": 1}}, 1, start=1.0, local__lr=0.5)
    plain = PlainRun(raw)
    state = {"w": torch.tensor([3.0]), "buffers": plain.start.buffers}
    sent, after = plain.algorithm.update(plain.task(0, plain.message), plain.message, state)
    assert float(sent["delta"]) == pytest.approx(-0.5)
    assert float(after["w"]) == pytest.approx(own)
