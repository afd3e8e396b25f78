"""FedAT: by hand, where it is FedAvg, and how tiers pick."""

import pytest
from conftest import Raw, Simulate, digits, quadratic

SECONDS: Raw = {"name": "log_normal", "median": 10.0, "sigma": 1.0, "unit": "seconds", "redraw": "client"}


def test_tiers_that_step_seldom_have_the_weights_of_those_that_step_often(simulate: Simulate) -> None:
    """Clients 0 and 2 take 1 s, clients 1 and 3 2.5 s. Two steps of 0.5 on |x - a|^2 / 2 + 0.2 |x - x0|^2 lead from x0
    to x0 + 0.65 (a - x0). At 1 s and 2 s, the fast tier is at 0.65 (2 + 4) / 2 = 1.95, with the slow tier's weight, 0.
    At 2.5 s the slow one comes to 0.65 (10 + 20) / 2 = 9.75, and the mean is 1.95 / 3 + 9.75 * 2 / 3. At 3 s the fast
    one is still at 1.95, from 0, and the mean is 1.95 / 4 + 9.75 * 3 / 4 = 7.8. At 4 s it has come from there to 7.8 *
    0.35 + 1.95 = 4.68, and the mean is 4.68 / 5 + 9.75 * 4 / 5."""
    world = {
        "dispatch": {"per_tier": 2, "tiers": 2},
        "delay": {"name": "scripted", "delays": [[1.0] * 9, [2.5] * 9, [1.0] * 9, [2.5] * 9], "unit": "seconds"},
    }
    result = simulate(quadratic([2.0, 10.0, 4.0, 20.0], "fedat", world, 5, local__steps=2, local__lr=0.5))
    assert result.vectors()["w"] == pytest.approx([4.68 / 5 + 9.75 * 4 / 5], abs=1e-5)
    steps = result.pandas("steps")
    assert steps.virtual_time.tolist() == [1.0, 2.0, 2.5, 3.0, 4.0]
    assert steps.tier.tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize("algorithm", ["fedat", "fedavg"])
def test_a_tier_picks_anew_when_all_that_it_picked_are_back_or_lost(simulate: Simulate, algorithm: str) -> None:
    world = {"dispatch": {"per_tier": 3, "tiers": 3}, "delay": SECONDS, "dropout": {"probability": 0.3}}
    updates = simulate(digits(algorithm=algorithm, world=world, run__rounds=20)).pandas("updates")
    waves = updates.groupby(updates.dispatch // 3)  # each pick is of three
    assert (waves.dispatched_at.nunique() == 1).all()
    begun, over = waves.dispatched_at.first().tolist(), sorted(waves.virtual_time.max())
    assert begun == [0.0] * 3 + over[: len(begun) - 3]
    assert (updates.status == "dropped").any()
