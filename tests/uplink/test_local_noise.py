"""Noise that clients add themselves: by hand, its law, and which bound it follows from."""

from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits
from pytest import approx
from test_codecs import draw

from raysim import ScenarioError, parse_scenario
from raysim.uplink.channel import Channel
from raysim.uplink.noise import GaussianNoise, LaplaceNoise, NormBound
from raysim.uplink.sparse import TopNumbers
from raysim.uplink.uplink import Size, Uplink

ZEROS = torch.zeros(200_000)


def through(transforms: list[Uplink], vector: torch.Tensor) -> torch.Tensor:
    return Channel("uplink", dict(enumerate(transforms)), ((len(vector),),))(vector, {}, draw).vector


@pytest.mark.parametrize(
    ("epsilon", "bound", "std"),
    [(1.0, 0.5, 3.730632), (5.0, 0.5, 0.891868), (1.0, 1.0, 7.461263), (5.0, 1.0, 1.783737)],
)
def test_gaussian_noise_is_the_least_that_keeps_to_epsilon(epsilon: float, bound: float, std: float) -> None:
    """Any two updates are up to 2 C apart, so that a bound of 1/2 is a sensitivity of 1."""
    noise = GaussianNoise(epsilon=epsilon, delta=1e-5)
    assert noise.std_for(bound) == approx(std, abs=1e-6)
    drawn = through([NormBound(max=bound), noise], ZEROS)
    assert float(drawn.std()) == approx(std, rel=0.01)


def test_laplace_noise_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor([0.7, 0.2], dtype=torch.float64))
    sent = through([NormBound(max=2.0, order=1), LaplaceNoise(epsilon=4.0)], torch.tensor([3.0, -1.0]))
    assert sent.tolist() == approx([2.010826, -1.416291], abs=1e-6) and sent.dtype == torch.float32


def test_laplace_noise_has_its_law() -> None:
    """With scale 1, the mean of |x| is 1, and that of x^2 is 2."""
    drawn = through([NormBound(max=2.0, order=1), LaplaceNoise(epsilon=4.0)], ZEROS)
    assert float(drawn.abs().mean()) == approx(1, rel=0.02)
    assert float(drawn.square().mean()) == approx(2, rel=0.04)
    assert abs(float(drawn.mean())) < 0.02


def test_the_mean_of_many_has_the_law_of_noise_at_the_server() -> None:
    """m clients' noise of standard deviation s, averaged, is that of a sum over m with multiplier s sqrt(m) / C."""
    one = GaussianNoise(std=2.0)
    drawn = [Channel("uplink", {0: one}, ((len(ZEROS),),))(ZEROS, {}, lambda _, n=n: draw(n)).vector for n in range(9)]
    assert float(torch.stack(drawn).mean(0).std()) == approx(2.0 * 9**0.5 / 9, rel=0.01)


def test_no_noise_changes_no_bit(simulate: Simulate) -> None:
    plain = digits(run__rounds=3, algorithm="fedavg")
    assert simulate({**plain, "uplink": [{"name": "gaussian", "std": 0.0}]}).digest == simulate(plain).digest


def test_clients_and_dispatches_draw_other_noise(simulate: Simulate) -> None:
    raw = digits(run__rounds=3, algorithm="fedavg", world__delay="none", local__lr=1e-9)
    chain: Any = [{"name": "clip_norm", "max": 1.0, "order": 1}, {"name": "laplace", "epsilon": 1.0}]
    norms = simulate({**raw, "uplink": chain}).pandas("updates").norm_after
    assert len(set(norms)) == len(norms) and norms.min() > 1


def test_noise_travels_dense() -> None:
    size = TopNumbers(k=10).size(Size.dense(((100,),)))
    assert size.bytes < 400 and GaussianNoise(std=1.0).size(size).bytes == 400


CLIP: Raw = {"name": "clip_norm", "max": 1.0}
LAPLACE: Raw = {"name": "laplace", "epsilon": 1.0}


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        ([LAPLACE], "uplink.0: must have clip_norm with order: 1, .* got nothing"),
        ([CLIP, LAPLACE], "uplink.1: must have clip_norm with order: 1, .* got another one"),
        ([{**CLIP, "order": 1, "adapt": {}}, LAPLACE], "uplink.1: must have clip_norm .* without adapt"),
        ([CLIP, {"name": "half"}, {"name": "gaussian", "epsilon": 1.0, "delta": 1e-5}], "uplink.2: .* got half"),
        ([{"name": "gaussian", "epsilon": 1.0}], "uplink.0: must have either std, or both .* got epsilon"),
    ],
)
def test_noise_without_its_bound_is_refused(chain: list[Raw], text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(digits(uplink=chain))


def test_noise_of_a_given_size_needs_no_bound(simulate: Simulate) -> None:
    assert np.isfinite(simulate(digits(uplink=[{"name": "gaussian", "std": 0.01}], run__rounds=2)).vectors()["w"]).all()
