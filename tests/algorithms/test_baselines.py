"""Baselines that papers compare with: by hand, and by identities."""

from typing import Any

import pytest
import torch
from by_hand import final, scripted, x
from conftest import Raw, Simulate, quadratic

from raysim import ScenarioError, parse_scenario
from raysim.algorithms import FedNova

HALF: Raw = {"lr": 0.5}


@pytest.mark.parametrize(
    ("algorithm", "rounds", "expected"),
    [
        # 1 goes to 0.5 and 2.5, so h = -0.25 and w = 1 + 0.5 + 0.5; then 2 goes to 1.125 and 2.625, for the clients'
        # gradients are 0.25 and -0.75: h = -0.1875 and w = 2 - 0.125 + 0.375
        ({"name": "feddyn", "alpha": 0.5}, 1, 2.0),
        ({"name": "feddyn", "alpha": 0.5}, 2, 2.25),
        # theta goes to 0.5 and 0.375, w to 0.75 and 0.5625; of the other client, to 2.5 and 2.875, 1.75 and 2.3125
        ({"name": "pfedme", "lam": 1.0, "lr": 0.5, "local_rounds": 2, "steps": 1}, 1, 1 + (-0.4375 + 1.3125) / 2),
        ({"name": "pfedme", "lam": 1.0, "lr": 0.5, "local_rounds": 2, "steps": 1, "beta": 0.5}, 1, 1 + 0.4375 / 2),
        # the inner steps end at 0.5 and 2.5, where the gradients are 0.5 and -1.5; the Hessian is 1
        ({"name": "per_fedavg", "alpha": 0.5}, 1, 1 + (-0.25 + 0.75) / 2),
        ({"name": "per_fedavg", "alpha": 0.5, "approximation": "HF"}, 1, 1 + (-0.125 + 0.375) / 2),
    ],
)
def test_by_hand(simulate: Simulate, algorithm: Raw, rounds: int, expected: float) -> None:
    assert final(simulate, algorithm, rounds, HALF) == pytest.approx([expected], abs=1e-4)


def test_fednova_by_hand(simulate: Simulate) -> None:
    """One client takes a step of rate 1/2, and the other two steps: directions -1/2 and 9/8, 1 and 2 of 3 samples."""
    local = {"lr": 0.5, "batch_size": 1}
    expected = 1 + 5 / 3 * (-1 / 2 / 3 + 9 / 8 * 2 / 3)
    assert final(simulate, "fednova", 1, local, data__samples=[1, 2]) == pytest.approx([expected])


def test_fednova_counts_steps_with_momentum() -> None:
    """(2 - 0.5 (1 - 0.25) / 0.5) / 0.5."""
    assert float(FedNova().normaliser(torch.tensor(2.0), 0.5)) == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("picks", "expected"),
    [
        # changes are -0.5 and 1.5; then -0.75 in the place of the first; then 1.0625 in the place of the second
        ([[0, 1], [0], [1]], 1 + 0.5 + (-0.75 + 1.5) / 2 + (-0.75 + 1.0625) / 2),
        ([[0, 1], [], [], []], 1 + 4 * 0.5),  # the mean of -0.5 and 1.5 moves the model in each of four rounds
    ],
)
def test_mifa_moves_on_in_rounds_without_arrivals(simulate: Simulate, picks: Any, expected: float) -> None:
    raw = quadratic([0.0, 4.0], "mifa", {"dispatch": {"picks": picks}}, len(picks), start=1.0, local__lr=0.5)
    assert x(simulate, raw) == pytest.approx(expected)


@pytest.mark.parametrize(("start", "theta"), [("received", 0.7125), ("own", 0.6125)])
def test_pfedme_starts_at_the_received_model_or_at_its_own(simulate: Simulate, start: str, theta: float) -> None:
    """One client at 0, lam = 1: theta = theta - 0.25 (2 theta - w), then w = w - 0.2 (w - theta).

    Round 1, from w = theta = 1: theta = 0.75, w = 0.95. Round 2: from theta = 0.95, theta = 0.7125; from 0.75, 0.6125.
    """
    algorithm = {"name": "pfedme", "lam": 1.0, "lr": 0.2, "local_rounds": 1, "steps": 1, "start": start}
    raw = quadratic([0.0], algorithm, {"dispatch": {"per_round": 1}}, 2, start=1.0, local__lr=0.25)
    assert x(simulate, raw) == pytest.approx(0.95 - 0.2 * (0.95 - theta))


def test_ace_steps_at_every_arrival(simulate: Simulate) -> None:
    """The client at 0 moves by -0.5, and the server by half of it; the other then moves from 0.75 by 1.625."""
    world = scripted([[0], [1]], [[0.0], [0.0]])
    raw = quadratic([0.0, 4.0], "ace", world, 2, start=1.0, local__lr=0.5)
    assert x(simulate, raw) == pytest.approx(1 - 0.25 + (-0.5 + 1.625) / 2)


def test_dsgt_by_hand(simulate: Simulate) -> None:
    """Trackers start at 1 and -3. Peers mix 0.5 and 2.5 to 1.5, and their trackers, with 0.5 more each, to -0.5; then
    1.75 and -0.25."""
    raw = quadratic([0.0, 4.0], "dsgt", {}, 2, start=1.0, topology="complete", local__lr=0.5, local__steps=1)
    assert simulate(raw).vectors()["w"].flatten().tolist() == pytest.approx([1.75, 1.75])


def test_dfedsam_by_hand(simulate: Simulate) -> None:
    """Uphill of 1, gradients are 1.2 and -3.2, so that peers mix 0.4 and 2.6."""
    raw = quadratic([0.0, 4.0], {"name": "dfedsam", "rho": 0.2}, {}, 1, start=1.0, topology="line", local__lr=0.5)
    assert simulate(raw).vectors()["w"].flatten().tolist() == pytest.approx([1.5, 1.5])


DIGITS: Raw = {
    "name": "digits",
    "data": {"name": "digits", "clients": 8, "partition": {"name": "dirichlet_clients", "alpha": 0.5}},
    "model": {"name": "mlp", "hidden": [8], "personal": ["head"]},
    "world": {"dispatch": {"per_round": 4}},
    "run": {"rounds": 3, "evaluate_every": 3},
}
WHOLE: Raw = {"model": {"name": "mlp", "hidden": [8]}}
PEERS: Raw = {**WHOLE, "topology": "ring", "world": {}}


@pytest.mark.parametrize(
    ("one", "other", "more"),
    [
        ("lg_fedavg", "fedper", {}),
        ("fednova", "fedavg", {**WHOLE, "local": {"steps": 3}}),
        ({"name": "dfedsam", "rho": 0.0}, {"name": "dfedavgm", "momentum": 0.0}, PEERS),
    ],
)
def test_it_is_another_one_where_it_should_be(simulate: Simulate, one: Any, other: Any, more: Raw) -> None:
    vectors = [simulate({**DIGITS, **more, "algorithm": name}).vectors()["w"] for name in (one, other)]
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-6)


def test_the_head_of_fedbabu_stays_as_it_was_drawn(simulate: Simulate) -> None:
    before = simulate({**DIGITS, "algorithm": "fedbabu", "local": {"lr": 1e-12}}).state_dict()
    after = simulate({**DIGITS, "algorithm": "fedbabu"}).state_dict()
    moved = {name for name in after if not torch.equal(before[name], after[name])}
    assert moved
    assert not any(name.startswith("head") for name in moved)


@pytest.mark.parametrize(
    ("algorithm", "local", "problem"),
    [
        ("fednova", {"optimizer": "adam"}, r"local\.optimizer: must be sgd with no more than momentum for fednova"),
        ("per_fedavg", {"optimizer": {"momentum": 0.9}}, r"local\.optimizer\.momentum: must be 0 for per_fedavg"),
        ({"name": "mifa", "aggregate": "median"}, {}, r"algorithm\.aggregate: unknown key"),
        ("lg_fedavg", {}, r"model\.personal: must name the personal parameters"),
    ],
)
def test_what_does_not_fit_is_refused(algorithm: Any, local: Raw, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        parse_scenario({**DIGITS, **WHOLE, "algorithm": algorithm, "local": local})
