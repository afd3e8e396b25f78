"""FADAS: by hand."""

import math
from typing import Any

import pytest
from by_hand import x
from conftest import Raw, Simulate, quadratic

from raysim import ScenarioError, parse_scenario


def fadas(rounds: int, deltas: list[float], world: Raw, **options: Any) -> Raw:
    """Clients that always send the same delta each; x starts at 0."""
    constant: Raw = {"data__curvatures": [0.0] * len(deltas), "data__slopes": [-delta for delta in deltas]}
    block = {"name": "fadas", "buffer": options.pop("buffer", 5), "server": options}
    return quadratic([0.0] * len(deltas), block, world, rounds, **constant)


@pytest.mark.parametrize(("correction", "second"), [(False, 0.19 / math.sqrt(0.0199)), (True, 1.0)])
def test_two_steps_of_one(simulate: Simulate, correction: bool, second: float) -> None:
    """The first is 1, with and without bias correction."""
    block: Raw = {"buffer": 1, "lr": 1.0, "bias_correction": correction}
    worlds = [{"dispatch": {"picks": [[0]] * rounds}} for rounds in (1, 2)]
    got = [x(simulate, fadas(rounds, [1.0], world, **block)) for rounds, world in enumerate(worlds, 1)]
    assert got == pytest.approx([1.0, 1.0 + second], abs=1e-5)


def test_the_mean_of_updates_is_stepped_along_and_the_largest_second_moment_stays(simulate: Simulate) -> None:
    """Deltas 3 and 1, then 0 and 0: m = 0.2, 0.18; v = 0.04, then 0.0396, of which 0.04 is the larger."""
    world = {"dispatch": {"picks": [[0, 1], [2, 3]]}}
    raw = fadas(2, [3.0, 1.0, 0.0, 0.0], world, buffer=2, lr=1.0)
    assert x(simulate, raw) == pytest.approx(0.2 / 0.2 + 0.18 / 0.2, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "delay", "expected"),
    [
        ({"lr": 0.5}, 0.0, 0.5),
        ({"lr": 0.5}, 1.0, 0.5),  # at the threshold, not above it
        ({"lr": 0.5}, 3.0, 0.5 / 3),
        ({"lr": 0.5, "delay_threshold": 3.0}, 3.0, 0.5),
        ({"lr": 0.5, "delay_adaptive": "capped"}, 0.0, 0.5),
        ({"lr": 0.5, "delay_adaptive": "capped"}, 1.0, 0.5),
        ({"lr": 0.5, "delay_adaptive": "capped"}, 3.0, 1 / 3),
        ({"lr": 0.5, "delay_adaptive": "none"}, 3.0, 0.5),
    ],
)
def test_stale_steps_are_shorter(simulate: Simulate, options: Raw, delay: float, expected: float) -> None:
    """By the largest staleness of a step: of two updates, one is fresh."""
    picks: list[list[int]] = [[] for _ in range(4)]
    picks[0].append(0)
    picks[int(delay)].append(1)
    world = {
        "dispatch": {"picks": picks},
        "delay": {"name": "scripted", "delays": [[delay], [0.0]]},
        "staleness": "rounds",
    }
    assert x(simulate, fadas(4, [1.0, 1.0], world, buffer=2, **options)) == pytest.approx(expected, abs=1e-6)


def test_moments_must_forget() -> None:
    with pytest.raises(ScenarioError, match=r"algorithm\.server\.beta2: must be less than 1"):
        parse_scenario(fadas(1, [1.0], {"dispatch": {"per_round": 1}}, beta2=1.0))
