"""SCAFFOLD, by hand and against FedAvg."""

from typing import Any

import pytest
from by_hand import BOTH, final
from conftest import Raw, Simulate, digits, quadratic

from raysim import ScenarioError, parse_scenario

STEPS: Raw = {"lr": 0.25, "steps": 2}
CURVED: Raw = {"data__curvatures": [2.0, 1.0]}


@pytest.mark.parametrize(
    ("algorithm", "rounds", "expected"),
    [
        ("scaffold", 1, 1.28125),
        ("scaffold", 2, 1.3310546875),  # y = (1.09375, 1.568359375)
        ("fedavg", 1, 1.28125),  # the correction starts in round 2
        ("fedavg", 2, 1.3955078125),
        ({"name": "scaffold", "server_lr": 0.5}, 1, 1.140625),
    ],
)
def test_scaffold_by_hand(simulate: Simulate, algorithm: Any, rounds: int, expected: float) -> None:
    """h = (2, 1), a = (0, 4), two steps of 0.25 a round."""
    assert final(simulate, algorithm, rounds, STEPS, **CURVED) == pytest.approx([expected], abs=1e-6)


def test_scaffold_divides_by_the_steps_that_a_client_took(simulate: Simulate) -> None:
    """Client 0 has two samples, so two steps: c = (1.5, -3), then y = (1.09375, 1.1875)."""
    local = {"lr": 0.25, "batch_size": 1}
    got = [final(simulate, "scaffold", rounds, local, **CURVED, data__samples=[2, 1]) for rounds in (1, 2)]
    assert [x for (x,) in got] == pytest.approx([1.0, 1.140625], abs=1e-6)


def test_scaffold_moves_the_servers_control_by_the_share_that_took_part(simulate: Simulate) -> None:
    """Client 0 alone: x = 0.25, c_0 = 1.5, c = 0.75; then y = 0.3125, 0.34375."""
    alone = {"dispatch": {"picks": [[0], [0]]}}
    got = final(simulate, "scaffold", 2, STEPS, alone, **CURVED)
    assert got == pytest.approx([0.34375], abs=1e-6)


def test_scaffold_sends_control_variates_both_ways(simulate: Simulate) -> None:
    updates = simulate(quadratic([[0.0] * 3] * 2, "scaffold", BOTH, 1)).pandas("updates")
    assert set(updates.up_bytes) == set(updates.down_bytes) == {2 * 4 * 3}


@pytest.mark.parametrize(
    ("local", "wrong"),
    [
        ({"optimizer": "adam", "weight_decay": 0.1}, {"optimizer": ("sgd", "adam"), "weight_decay": (0, 0.1)}),
        ({"optimizer": {"name": "sgd", "momentum": 0.9}}, {"optimizer.momentum": (0, 0.9)}),
    ],
)
def test_scaffold_wants_plain_sgd(local: Raw, wrong: Raw) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(digits(algorithm="scaffold", local=local))
    why = "for scaffold, whose estimate (x - y) / (K lr) holds for plain SGD, got"
    assert str(caught.value).splitlines() == [
        f"scenario: local.{key}: must be {must} {why} {got}" for key, (must, got) in wrong.items()
    ]
    assert parse_scenario(digits(algorithm="fedavg", local=local))
