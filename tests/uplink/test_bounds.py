"""Bounds of norms: of all layers or each, of three norms, and bounds that follow what clients send."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Raw, Simulate, digits, quadratic
from pytest import approx
from test_codecs import draw

from raysim import ScenarioError, parse_scenario
from raysim.laws.runs import PicklingPool, carried_out
from raysim.uplink.channel import Channel
from raysim.uplink.noise import NormBound

TWO = ((2,), (2,))
U = [3.0, 4.0, 5.0, 12.0]


def bounded(bound: NormBound, vector: list[float], shapes: Any = TWO) -> list[float]:
    found: list[float] = Channel("uplink", {0: bound}, shapes)(torch.tensor(vector), {}, draw).vector.tolist()
    return found


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (NormBound(max=2.0, layers="equal"), [0.848528, 1.131371, 0.543928, 1.305428]),
        (NormBound(max=2.0), [0.430775, 0.574367, 0.717958, 1.723100]),
        (NormBound(max=8.0, layers="equal"), [3.0, 4.0, 2.175713, 5.221712]),  # the first is below 5.66
        (NormBound(max=8.0, order=1, layers="equal"), [12 / 7, 16 / 7, 20 / 17, 48 / 17]),
        (NormBound(max=6.0, order="inf", layers="equal"), [3.0, 4.0, 2.5, 6.0]),
        (NormBound(max=6.0, order="inf"), [1.5, 2.0, 2.5, 6.0]),
    ],
)
def test_layers_are_bounded_such_that_the_whole_is(bound: NormBound, expected: list[float]) -> None:
    found = bounded(bound, U)
    assert found == approx(expected, abs=1e-6)
    assert np.linalg.norm(found, float(bound.order)) <= bound.max * (1 + 1e-6)


def test_short_vectors_stay_as_they_are() -> None:
    for vector in ([0.0, 0.0], [3.0, 4.0]):
        given = torch.tensor(vector)
        assert Channel("uplink", {0: NormBound(max=10.0)}, ((2,),))(given, {}, draw).vector is given


def test_a_bound_at_clients_is_one_of_the_aggregate(simulate: Simulate) -> None:
    plain = digits(algorithm="fedavg", run__rounds=4, world__delay="none")
    there = digits(**{**plain, "uplink": [{"name": "clip_norm", "max": 0.3}]})
    here = digits(**{**plain, "algorithm": {"name": "fedavg", "aggregate": {"name": "clip_norm", "max": 0.3}}})
    one, other = (simulate(raw).vectors()["w"] for raw in (there, here))
    assert one == approx(other, abs=1e-5)


def test_larger_layers_may_have_larger_bounds() -> None:
    """Layers of one and of three numbers get bounds of 1 and of the square root of 3."""
    bound = NormBound(max=2.0, layers="size")
    assert bounded(bound, [3.0, 0.0, -9.0, 0.0], ((1,), (3,))) == approx([1.0, 0.0, -1.732051, 0.0], abs=1e-6)


def test_one_layer_is_bounded_as_the_whole() -> None:
    for layers in ("equal", "size"):
        assert bounded(NormBound(max=2.0, layers=layers), U, ((4,),)) == bounded(NormBound(max=2.0), U)


def test_l1_norms_are_shortened() -> None:
    assert bounded(NormBound(max=2.0, order=1), [3.0, -1.0]) == approx([1.5, -0.5])


def test_an_unreachable_bound_changes_no_bit_and_columns_say_who_was_clipped(simulate: Simulate) -> None:
    plain = digits(algorithm="fedavg", run__rounds=3, world__delay="none")
    loose, tight = (digits(**{**plain, "uplink": [{"name": "clip_norm", "max": most}]}) for most in (1e30, 0.3))
    found = simulate(loose)
    assert found.digest == simulate(plain).digest
    assert set(found.pandas("updates").clipped) == {0}
    updates = simulate(tight).pandas("updates")
    assert ((updates.norm_before > 0.3) == (updates.clipped == 1)).all()
    assert updates.clipped.mean() > 0 and updates.norm_after.max() <= 0.3 * (1 + 1e-6)


# --- bounds that adapt ------------------------------------------------------------------------------------------------


def distances(norms: list[float], adapt: Raw, rounds: int, first: float, **more: Any) -> Raw:
    """Clients whose updates have these norms in each round, in which the server's model stays where it is."""
    server = {"name": "fedavg", "weights": "uniform", "server": {"lr": 1e-12}}
    clip = {"name": "clip_norm", "max": first, "adapt": adapt}
    world = {"dispatch": {"per_round": len(norms)}}
    return quadratic(norms, server, world, rounds, uplink=[clip], **more)


def bounds(simulate: Simulate, raw: Raw) -> list[float]:
    """The bound of each round, which is the norm of the longest update after clipping."""
    updates = simulate(raw).pandas("updates")
    found: list[float] = updates[updates.clipped == 1].groupby("round").norm_after.max().tolist()
    return found


NORMS = [0.5, 0.7, 0.9, 1.1, 1.3, 2.0, 2.5, 3.0, 4.0, 5.0]


def test_a_bound_follows_the_share_of_updates_that_are_not_longer(simulate: Simulate) -> None:
    """8 of 10 are below 1: exp(-0.2 (0.8 - 0.5))."""
    found = bounds(simulate, distances([0.5] * 8 + [9.0] * 2, {}, 2, 1.0))
    assert found == approx([1.0, 0.941765], abs=1e-6)


def test_noise_on_the_count(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    """With xi = -1.5, the share is 0.65."""
    monkeypatch.setattr(torch, "randn", lambda *_, **__: torch.tensor(-1.5))
    found = bounds(simulate, distances([0.5] * 8 + [9.0] * 2, {"count_noise": 1.0}, 2, 1.0))
    assert found == approx([1.0, 0.970446], abs=1e-6)


def test_a_bound_comes_to_the_quantile(simulate: Simulate) -> None:
    """It ends between the two norms in the middle, where 1.3 and 2 are."""
    assert bounds(simulate, distances(NORMS, {}, 201, 0.1))[-1] == approx(1.319714, abs=1e-5)


def test_weights_count_as_in_the_sum(simulate: Simulate) -> None:
    """FedAvg by samples: the update that is not longer has 3 of 4 samples: exp(-0.2 (0.75 - 0.5))."""
    raw = distances([0.5, 9.0], {}, 2, 1.0, data__samples=[3, 1], algorithm__weights="samples")
    assert bounds(simulate, raw) == approx([1.0, math.exp(-0.05)], abs=1e-6)


def test_a_stale_update_is_clipped_by_the_bound_that_came_with_its_model(simulate: Simulate) -> None:
    """Client 1 is dispatched in round 0 and arrives in round 2; client 0 is always below the bound, which shrinks."""
    raw = distances([0.5, 9.0], {"quantile": 0.0}, 3, 1.0)
    raw["algorithm"] = {"name": "fedbuff", "buffer": 1, "server": {"lr": 1e-12}}
    raw["world"] = {
        "dispatch": {"picks": [[0, 1], [0], [0]]},
        "delay": {"name": "scripted", "delays": [[0, 0, 0], [2]]},
    }
    updates = simulate(raw).pandas("updates")
    (late,) = updates[(updates.client == 1) & (updates.status == "used")].norm_after
    assert late == approx(1.0) and len(updates) == 4


ADAPTIVE: Raw = {"name": "clip_norm", "max": 0.3, "adapt": {"count_noise": 0.5}}


def test_a_rate_of_zero_is_a_fixed_bound(simulate: Simulate) -> None:
    fixed, still = (
        simulate(digits(uplink=[{"name": "clip_norm", "max": 0.3, **adapt}], run__rounds=6))
        for adapt in ({}, {"adapt": {"rate": 0.0}})
    )
    assert np.array_equal(fixed.vectors()["w"], still.vectors()["w"])
    one, other = (run.pandas("updates") for run in (fixed, still))
    assert set((other.down_bytes - one.down_bytes).dropna()) == {4}  # the bound itself
    assert set((other.up_bytes - one.up_bytes).dropna()) == {1}  # a bit, in whole bytes


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": {"name": "fedbuff", "buffer": 3}},
        {"algorithm": "ditto", "run__evaluate_clients": 5, "data__local_test": 0.2},
        {"resources": {"aggregators": 2, "shards": 2, "chunk": 2}},
    ],
    ids=["fedbuff", "ditto", "aggregators"],
)
def test_the_same_bits_when_stopped_half_way_and_elsewhere(changes: Raw) -> None:
    raw = digits(**{"algorithm": "fedavg", "uplink": [ADAPTIVE], "world__delay": "none", "run__rounds": 4, **changes})
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == carried_out(raw).digest


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"algorithm": "scaffold"}, "uplink.0: scaffold sums up .* leave clip_norm out"),
        ({"uplink": [ADAPTIVE, {"name": "clip_norm", "max": 1.0}]}, "uplink.0.adapt: must stand in the last clip_norm"),
        ({"uplink": [{**ADAPTIVE, "layers": "equal"}]}, "uplink.0: adapt goes with one bound .* got layers: equal"),
        ({"algorithm": "d_psgd", "topology": "ring", "world": {}, "local__steps": 1}, "uplink.0.adapt: needs a server"),
    ],
)
def test_what_does_not_adapt_is_refused(changes: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(digits(**{"uplink": [ADAPTIVE], **changes}))
