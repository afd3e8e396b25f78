"""Clients that are sampled: what the accountants of dp-accounting say, and what they need."""

from importlib.util import find_spec
from typing import Any

import pytest
from conftest import Raw, Simulate, digits, override
from pytest import approx

from raysim import ScenarioError, parse_scenario
from raysim.privacy.sampled import Sampled

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
    delta = 1e-5 - 8 * 0.5**30  # a round that draws nobody shows that
    assert found["epsilon"] == approx(Sampled("rdp", 0.5, delta).epsilon(2.0, 8))
    assert found["sampling"] == "poisson" and found["library"].startswith("dp-accounting ")
    as_if = override(SAMPLED, privacy__population=1_000_000, privacy__cohort=1000)
    assert simulate(as_if, "--dry").info["privacy"]["probability"] == 0.001
    ended = simulate(override(SAMPLED, privacy__epsilon=found["epsilon"] * 0.8), "--dry").info
    assert ended["ended_by"] == "epsilon" and ended["totals"]["steps"] < 8


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"privacy__sampling": "none"},
            "privacy: accountant must be rdp or pld with sampling: poisson",
        ),
        (
            {"world__dispatch": {"per_round": 5}, "algorithm__weights": "uniform"},
            "world.dispatch: must have prob",
        ),
        ({"world__dropout": {"probability": 0.1}}, "world.dropout: must be 0 with privacy.accountant"),
        ({"release__name": "tree"}, "release.name: must be gaussian with privacy.accountant"),
        ({"algorithm__weights": "uniform"}, "algorithm.weights: must be expected with privacy.accountant"),
    ],
)
def test_claims_that_the_timeline_does_not_give(changes: Any, text: str) -> None:
    raw: Raw = override(SAMPLED, **changes)
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(raw)
