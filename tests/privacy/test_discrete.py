"""Discrete noise on sums of integers: by hand, its law, what it costs, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, override, quadratic
from pytest import approx

from raysim.laws.runs import PicklingPool, carried_out
from raysim.parts.errors import BadValue
from raysim.privacy.discrete import DiscreteRelease, Rounded, concentrated_delta, discrete_gaussian, rounded_norm
from raysim.privacy.exposure import epsilon_of, mu_of
from raysim.privacy.release import Summed
from raysim.uplink.uplink import Size, UplinkPoint

PRIVATE = digits(
    algorithm={"name": "fedbuff", "buffer": 3, "staleness": "none"},
    uplink=[{"name": "clip_norm", "max": 0.5}],
    release={"name": "discrete", "multiplier": 2.0, "grid": 1e-4},
    privacy={"delta": 1e-5},
)


def wrapped(sums: list[float], **keys: Any) -> list[float]:
    """Sums after the release, without noise."""
    of = Summed(torch.tensor(sums), 0.0, 1.0, 2)
    found, _ = DiscreteRelease(multiplier=0.0, **keys).add(of, 1, {}, lambda *ids: torch.Generator())
    return [round(number, 6) for number in found.tolist()]


def test_sums_wrap_around() -> None:
    assert wrapped([5.0 + 6, -7.0 - 6, 3.0 + 4], grid=1.0, bits=4) == [-5, 3, 7]


def test_a_run_whose_sums_wrap_around(simulate: Simulate) -> None:
    """Updates (5, -7, 3) and (6, -6, 4) on a grid of 1 are sent as they are; the mean is half of what is left of their
    sum."""
    algorithm = {"name": "fedavg", "weights": "uniform"}
    centers = [[5.0, -7.0, 3.0], [6.0, -6.0, 4.0]]
    raw = quadratic(centers, algorithm, {"dispatch": {"picks": [[0, 1]]}}, 1, local__lr=1.0)
    result = simulate({**raw, "release": {"name": "discrete", "multiplier": 0.0, "grid": 1.0, "bits": 4}})
    assert result.vectors()["w"].tolist() == [-2.5, 1.5, 3.5]
    updates = result.pandas("updates")
    assert {*updates.up_bytes} == {2} and {*updates.norm_after} == {*updates.norm_before}  # three numbers of 4 bits


def test_clients_round_by_hand(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor([0.4, 0.95]))
    algorithm, release = {"name": "fedavg", "weights": "uniform"}, {"name": "discrete", "multiplier": 0.0, "grid": 0.1}
    raw = quadratic([[0.31, -0.77]], algorithm, {"dispatch": {"per_round": 1}}, 1, release=release)
    assert simulate(raw).vectors()["w"].tolist() == approx([0.3, -0.8])


def test_the_noise_of_one_client_by_hand() -> None:
    """One of ten clients adds 0.316228 where z C = 1, and the grid must be at most half of that."""
    DiscreteRelease(multiplier=1.0, grid=0.1581).require(1.0, 10)
    with pytest.raises(BadValue, match=r"got 0.316228 and 1 steps"):
        DiscreteRelease(multiplier=1.0, grid=0.316228).require(1.0, 10)


def test_rounding_is_right_on_average_and_keeps_to_its_norm() -> None:
    given, draw = torch.linspace(-0.3, 0.3, 50), torch.Generator().manual_seed(0)
    point, part = UplinkPoint(Size.dense(((50,),)), draw), Rounded(grid=0.1, bits=16)
    found = torch.stack([part.send(given, {}, point).vector for _ in range(2000)])
    longest = rounded_norm(float(given.norm()), 0.1, 50)
    assert float(found.norm(dim=1).max()) <= longest * 1.0001 < float(given.norm()) + 0.1 * math.sqrt(50)
    assert float((found.mean(0) - given).abs().max()) < 4 * 0.05 / math.sqrt(2000) + 0.003  # of those that are kept


@pytest.mark.parametrize("std", [0.7, 3.0, 250.0])
def test_the_law_of_the_noise(std: float) -> None:
    """Each integer comes as often as its probability says, and none is drawn otherwise by the same seed."""
    drawn = discrete_gaussian(std, 40_000, 1)
    assert (drawn == discrete_gaussian(std, 40_000, 1)).all() and (drawn != discrete_gaussian(std, 40_000, 2)).any()
    support = np.arange(-int(12 * std) - 2, int(12 * std) + 3)
    law = np.exp(-(support**2) / (2 * std**2))
    law /= law.sum()
    for low in (-std, -0.5, 0.5, std):
        share = law[support < low].sum()
        assert (drawn < low).mean() == approx(share, abs=4 * math.sqrt(share * (1 - share) / len(drawn)))


def test_parts_of_clients_who_are_gone_are_missing(simulate: Simulate) -> None:
    """Two of ten: the noise of z C = 1 has a standard deviation of 0.894427, and counts as that."""
    raw = override(PRIVATE, uplink=[{"name": "clip_norm", "max": 1.0}], release__multiplier=1.0, release__grid=1e-6)
    raw["release"]["bits"] = 24
    steps = {missing: simulate(override(raw, release__missing=missing)) for missing in (0.0, 0.2)}
    stds = [result.pandas("steps").noise_std.to_numpy() * 3 for result in steps.values()]  # in the sum of three
    assert stds[0] == approx(1.0, abs=1e-5) and stds[1] == approx(0.894427, abs=1e-5)
    epsilons = [result.info["privacy"]["epsilon"] for result in steps.values()]
    uses = steps[0.0].info["privacy"]["largest_uses"]
    for epsilon, std in zip(epsilons, (1.0, math.sqrt(0.8)), strict=True):
        assert epsilon == approx(epsilon_of(math.sqrt(uses) / std, 1e-5, concentrated_delta))


def test_what_concentrated_privacy_costs() -> None:
    """Fifty uses at z = 5: what accountants of Renyi divergences say, and a little more than the closed form."""
    mu = math.sqrt(50) / 5
    assert epsilon_of(mu, 1e-5, concentrated_delta) == approx(7.077392, abs=2e-4)
    assert epsilon_of(mu, 1e-5) < epsilon_of(mu, 1e-5, concentrated_delta) < 7.077393
    for nodes, multiplier, epsilon in (
        (8, 10, 1.158151),
        (10, 5, 2.813653),
    ):  # one use of a tree of 128, of 1,000 steps
        assert epsilon_of(math.sqrt(nodes) / multiplier, 1e-5, concentrated_delta) == approx(epsilon, rel=1e-3)
    assert epsilon_of(mu_of(2.0, 1e-5, concentrated_delta), 1e-5, concentrated_delta) == approx(2.0)


def test_a_fine_grid_comes_to_gaussian_noise(simulate: Simulate) -> None:
    """The noise is as large, to what rounding adds to what a client sends; the same multiplier has another epsilon."""
    fine = simulate(override(PRIVATE, release__grid=1e-6, release__bits=24))
    other = simulate(override(PRIVATE, release={"name": "gaussian", "multiplier": 2.0}))
    assert fine.pandas("steps").noise_std.tolist() == approx(other.pandas("steps").noise_std.tolist(), rel=1e-5)
    assert fine.info["privacy"]["accountant"] == "concentrated" and other.info["privacy"]["accountant"] == "exact"
    assert fine.info["privacy"]["epsilon"] == approx(other.info["privacy"]["epsilon"], rel=0.1)
    # Without noise, rounding alone is left.
    bare = [
        simulate(override(PRIVATE, release=None, privacy=None)),
        simulate(override(PRIVATE, release__multiplier=0.0)),
    ]
    one, two = (result.vectors()["w"] for result in bare)
    assert (one != two).any() and np.abs(one - two).max() < 2e-3


def test_the_same_bits_when_a_run_goes_on() -> None:
    one, other = carried_out(PRIVATE, PicklingPool(), stop_after=3), carried_out(PRIVATE)
    assert one.digest == other.digest and one.info["privacy"] == other.info["privacy"]


def test_an_epsilon_is_met(simulate: Simulate) -> None:
    raw = override(PRIVATE, release__multiplier="auto", privacy__epsilon=3.0, release__missing=0.1)
    assert simulate(raw, "--dry").info["privacy"]["epsilon"] == approx(3.0)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"algorithm__staleness": {"name": "poly"}}, "release.name: must be gaussian where weights differ, because"),
        ({"release__grid": 0.1, "release__multiplier": 0.1}, r"release.grid: must be so fine that the noise of each"),
    ],
)
def test_what_is_refused(changes: Raw, text: str, simulate: Simulate) -> None:
    with pytest.raises(Exception, match=text):
        simulate({**override(PRIVATE, **changes), "world": {**PRIVATE["world"], "staleness": "rounds"}})
