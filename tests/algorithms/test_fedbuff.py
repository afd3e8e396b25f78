"""FedBuff, FedAsync and FedAT: by hand, where they are FedAvg, and how tiers pick."""

import math
from typing import Any

import pytest
from by_hand import DELAYS, PICKS, scripted, x
from conftest import Raw, Simulate, digits, quadratic


@pytest.mark.parametrize(("staleness", "expected"), [({"name": "poly"}, 2.0), ("none", 3.0)])
def test_fedbuff_divides_by_the_buffer_size(simulate: Simulate, staleness: Any, expected: float) -> None:
    """K = 2, (delta, s) = (2, 0), (4, 3)."""
    algorithm = {"name": "fedbuff", "buffer": 2, "staleness": staleness}
    world = scripted([[1], [], [], [0]], [[0.0], [3.0]])
    raw = quadratic([0.0, 0.0], algorithm, world, 4, data__curvatures=[0.0, 0.0], data__slopes=[-2.0, -4.0])
    assert x(simulate, raw) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ({"name": "fedavg", "weights": "uniform"}, [1.0, 2.0, 3.0]),
        ({"name": "fedbuff", "buffer": 2, "staleness": "none"}, [0.0, 1.0, 2.0]),
        ({"name": "fedbuff", "buffer": 2}, [0.0, 1.0, 1 + (1 + 1 / math.sqrt(3)) / 2]),
    ],
)
def test_the_scripted_rounds_of_feddle(simulate: Simulate, algorithm: Raw, expected: list[float]) -> None:
    """Four clients that always send delta = +1, for one, two and three rounds."""
    constant = {"data__curvatures": [0.0] * 4, "data__slopes": [-1.0] * 4}
    got = [
        x(simulate, quadratic([0.0] * 4, algorithm, scripted(PICKS[:rounds], DELAYS), rounds, **constant))
        for rounds in (1, 2, 3)
    ]
    assert got == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("staleness", "delay", "expected"),
    [
        ("const", 0.0, 2.6),
        ("const", 3.0, 2.6),
        ({"name": "poly", "exponent": 0.5}, 3.0, 1.8),
        ({"name": "hinge", "slope": 10.0, "grace": 4.0}, 3.0, 2.6),
        ({"name": "hinge", "slope": 10.0, "grace": 4.0}, 5.0, 1 + 1.6 / 11),
    ],
)
def test_fedasync_mixes_by_staleness(simulate: Simulate, staleness: Any, delay: float, expected: float) -> None:
    """x = 1, y = 3, alpha = 0.8."""
    algorithm = {"name": "fedasync", "alpha": 0.8, "staleness": staleness}
    world = scripted([[0], [], [], [], [], []], [[delay]])
    assert x(simulate, quadratic([3.0], algorithm, world, 6, start=1.0)) == pytest.approx(expected, abs=1e-6)


def test_fedasync_mixes_simultaneous_arrivals_one_by_one(simulate: Simulate) -> None:
    """Two with s = 3: 1.8, then 2.28."""
    algorithm = {"name": "fedasync", "alpha": 0.8}
    world = scripted([[0, 1], [], [], []], [[3.0], [3.0]])
    result = simulate(quadratic([3.0, 3.0], algorithm, world, 4, start=1.0))
    assert result.vectors()["w"].tolist() == pytest.approx([2.28], abs=1e-6)
    assert result.pandas("updates").staleness.tolist() == [3.0, 3.0]


def test_fedasync_pulls_towards_the_received_model(simulate: Simulate) -> None:
    """f = x^2 / 2, rho = 1, lr = 0.5, two steps from 1: 0.5, then 0.5 - 0.5 (0.5 + (0.5 - 1)) = 0.5."""
    algorithm = {"name": "fedasync", "alpha": 1.0, "rho": 1.0}
    raw = quadratic([0.0], algorithm, {"dispatch": {"picks": [[0]]}}, 1, start=1.0)
    assert x(simulate, {**raw, "local": {"lr": 0.5, "steps": 2, "batch_size": None}}) == pytest.approx(0.5, abs=1e-6)


def test_fedasync_mixes_buffers_as_it_mixes_weights(simulate: Simulate) -> None:
    """With alpha = 0 nothing moves: neither weights nor BatchNorm statistics."""
    model = {"name": "module", "module": "own_modules:Net", "args": {"hidden": 4}}
    small = {"model": model, "data__clients": 4, "run__rounds": 1, "world": {"dispatch": {"per_round": 1}}}
    still, moving = (
        simulate(digits(algorithm={"name": "fedasync", "alpha": alpha}, local__steps=1, **small))
        for alpha in (0.0, 0.5)
    )
    start = [result.state_dict()["norm.running_var"] for result in (still, moving)]
    assert (start[0] == 1).all()
    assert not (start[1] == 1).all()


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
