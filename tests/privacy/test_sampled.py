"""Clients that are sampled: what the accountants of dp-accounting say, and what they need."""

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, digits, override
from pytest import approx

from raysim import ScenarioError, parse_scenario
from raysim.privacy.sampled import Sampled, drawn_alone

needs_library = pytest.mark.skipif(find_spec("dp_accounting") is None, reason="it needs raysim-fl[privacy]")
SAMPLED = digits(
    algorithm={"name": "fedavg", "weights": "expected"},
    world={"dispatch": {"probability": 0.5}},
    uplink=[{"name": "clip_norm", "max": 0.5}],
    release={"name": "gaussian", "multiplier": 2.0},
    privacy={"delta": 1e-5, "accountant": "rdp"},
)


@needs_library
@pytest.mark.parametrize(
    ("accountant", "q", "multiplier", "steps", "delta", "epsilon"),
    [
        ("rdp", 0.01, 1, 1000, 1e-5, 2.101367),
        ("pld", 0.01, 1, 1000, 1e-5, 1.828244),
        ("rdp", 0.1, 2, 200, 1e-6, 4.117568),
        ("pld", 0.1, 2, 200, 1e-6, 3.805876),
        ("rdp", 1, 5, 50, 1e-5, 7.077392),
        ("pld", 1, 5, 50, 1e-5, 6.572970),
        ("rdp", 1, 10 / 8**0.5, 1, 1e-5, 1.158151),  # one use of a tree over 128 steps, which 8 nodes hold
        ("rdp", 1, 5 / 10**0.5, 1, 1e-5, 2.813653),
    ],
)
def test_epsilons(accountant: str, q: float, multiplier: float, steps: int, delta: float, epsilon: float) -> None:
    assert Sampled(accountant, q, delta).epsilon(multiplier, steps) == approx(epsilon, abs=2e-6)


@needs_library
def test_the_multiplier_of_an_epsilon() -> None:
    assert Sampled("pld", 0.01, 1e-5).multiplier(2.0, 1000) == approx(0.959106, abs=2e-4)


@needs_library
def test_a_run_of_sampled_clients(simulate: Simulate) -> None:
    found = simulate(SAMPLED, "--dry").info["privacy"]
    delta = 1e-5 - 8 * 0.5 * 0.5**29  # a step of a client alone shows that it was drawn
    assert found["epsilon"] == approx(Sampled("rdp", 0.5, delta).epsilon(2.0, 8))
    assert found["sampling"] == "poisson" and found["library"].startswith("dp-accounting ")
    as_if = override(SAMPLED, privacy__population=1_000_000, privacy__cohort=1000)
    assert simulate(as_if, "--dry").info["privacy"]["probability"] == 0.001


@needs_library
@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_a_run_of_sampled_clients_ends_before_it_exceeds_epsilon(accountant: str, simulate: Simulate) -> None:
    raw = override(SAMPLED, privacy__accountant=accountant)
    most = simulate(raw, "--dry").info["privacy"]["epsilon"] * 0.8
    ended = simulate(override(raw, privacy__epsilon=most), "--dry").info
    assert ended["ended_by"] == "epsilon" and 0 < (steps := ended["totals"]["steps"]) < 8
    of = Sampled(accountant, 0.5, 1e-5 - 8 * drawn_alone(0.5, 30))
    assert ended["privacy"]["epsilon"] <= most < of.epsilon(2.0, steps + 1)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_rounds_that_draw_nobody(q: float) -> None:
    """One of two clients is drawn alone with probability q (1 - q), and delta grows by less than that."""
    x, step = np.linspace(-12, 12, 20_001, retstep=True)
    without, with_it = (np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (0.0, 1.0))
    sampled, alone = (1 - q) * without + q * with_it, 1 - q  # the probability that the other one is not drawn
    seen = (1 - alone) * sampled + alone * q * with_it, (1 - alone + alone * q) * without
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        for one, other in ((0, 1), (1, 0)):
            always = np.clip((sampled, without)[one] - math.exp(epsilon) * (sampled, without)[other], 0, None).sum()
            real = np.clip(seen[one] - math.exp(epsilon) * seen[other], 0, None).sum()
            assert real * step <= always * step + drawn_alone(q, 2)
    real = np.clip(seen[0] - math.e**0.1 * seen[1], 0, None).sum()
    assert real > np.clip(sampled - math.e**0.1 * without, 0, None).sum()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"privacy__sampling": "none"}, "privacy: accountant must be rdp or pld with sampling: poisson"),
        ({"world__dispatch": {"per_round": 5}, "algorithm__weights": "uniform"}, "world.dispatch: must have prob"),
        ({"run": {"until": {"virtual_time": 8}, "evaluate_every": 4}}, "run.rounds: must be given with privacy.acc"),
        ({"world__dropout": {"probability": 0.1}}, "world.dropout: must be 0 with privacy.accountant"),
        ({"release__name": "tree"}, "release.name: must be gaussian with privacy.accountant"),
        ({"algorithm__weights": "uniform"}, "algorithm.weights: must be expected with privacy.accountant"),
    ],
)
def test_claims_that_the_timeline_does_not_give(changes: Any, text: str) -> None:
    raw: Raw = override(SAMPLED, **changes)
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(raw)
