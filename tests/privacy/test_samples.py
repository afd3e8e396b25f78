"""How exposed samples are: by hand, from the timeline alone, and what would show more of them."""

from importlib.util import find_spec
from typing import Any

import pytest
from conftest import Raw, Simulate, digits
from pytest import approx

import raysim
from raysim import RunFailed, ScenarioError, parse_scenario
from raysim.laws.runs import PicklingPool, carried_out
from raysim.privacy.exposure import epsilon_of
from raysim.privacy.sampled import Sampled

NOISY: list[Raw] = [{"name": "per_sample", "clip": 1.0, "noise": 4.0}]
PRIVACY: Raw = {"delta": 1e-5, "unit": "sample"}


def private(**more: Any) -> Raw:
    return digits(**{"algorithm": "fedavg", "local__gradients": NOISY, "privacy": PRIVACY, **more})


def epsilon(steps: int, noise: float = 4.0) -> float:
    return epsilon_of(steps**0.5 / noise, 1e-5)


@pytest.mark.parametrize("dry", [False, True])
def test_all_that_arrives_counts_used_or_not(simulate: Simulate, dry: bool) -> None:
    """Two epochs in a training, in each of which a sample is in one mini-batch; FedAvg discards late updates."""
    result = simulate(private(local__epochs=2), *(["--dry"] if dry else []))
    updates = result.pandas("updates")
    arrived = updates[updates.arrived_at.notna()].groupby("client").size()
    assert (updates.status == "discarded").any()
    exposed = result.pandas("privacy").set_index("client")
    assert (exposed.uses[arrived.index] == 2 * arrived).all() and exposed.uses.sum() == 2 * arrived.sum()
    for uses, found in zip(exposed.uses, exposed.epsilon, strict=True):
        assert found == approx(epsilon(uses), abs=1e-9)
    told = result.info["privacy"]
    assert told["unit"] == "sample" and told["multiplier"] == 4.0 and told["epsilon"] == exposed.epsilon.max()


def test_each_step_counts_where_mini_batches_are_drawn_and_groups_have_other_noise(simulate: Simulate) -> None:
    group = {"name": "loud", "members": [0], "local": {"gradients": [{**NOISY[0], "noise": 8.0}]}}
    raw = private(local__batches="poisson", local__steps=3, clients=[group], world={"dispatch": {"picks": [[0, 1]]}})
    exposed = simulate({**raw, "run": {"rounds": 1}}, "--dry").pandas("privacy").set_index("client")
    assert exposed.uses[[0, 1, 2]].tolist() == [3, 3, 0]
    assert exposed.epsilon[[0, 1, 2]].tolist() == approx([epsilon(3, 8.0), epsilon(3), 0.0], abs=1e-9)


def test_what_waits_in_a_buffer_at_the_end_counts(simulate: Simulate) -> None:
    """Five updates, of which a step uses three."""
    raw = private(algorithm={"name": "fedbuff", "buffer": 3}, world={"dispatch": {"per_round": 5}}, run={"rounds": 1})
    result = simulate(raw, "--dry")
    assert result.pandas("privacy").uses.sum() == 5 and (result.pandas("updates").status == "used").sum() == 3


def test_a_run_goes_on_with_what_it_has_counted() -> None:
    raw = private(run__rounds=4, local__batches="poisson", local__steps=2)
    assert carried_out(raw, PicklingPool(), stop_after=2).digest == carried_out(raw).digest


@pytest.mark.skipif(find_spec("dp_accounting") is None, reason="it needs raysim-fl[privacy]")
@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_mini_batches_that_are_drawn_lower_epsilon(accountant: str, simulate: Simulate) -> None:
    """Each client by how many samples it has, and so with which probability a step draws one of them."""
    raw = private(local__batches="poisson", local__steps=3, local__batch_size=8, run__rounds=2)
    exact = simulate(raw, "--dry").pandas("privacy")
    result = simulate({**raw, "privacy": {**PRIVACY, "accountant": accountant}}, "--dry")
    found, partition = result.pandas("privacy"), result.pandas("partition").groupby("client").samples.sum()
    for row in found.itertuples():
        q = min(8, partition[row.client]) / partition[row.client]
        assert row.epsilon == approx(Sampled(accountant, q, 1e-5).epsilon(4.0, row.uses))
    assert (found.uses == exact.uses).all() and (found.epsilon < exact.epsilon)[found.uses > 0].mean() > 0.5
    told = result.info["privacy"]
    assert told["epsilon"] == found.epsilon.max() and told["accountant"] == accountant and "library" in told
    assert told["sampling"] == "poisson" and result.pandas("steps").epsilon.isna().all()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"privacy": {**PRIVACY, "accountant": "rdp"}}, "local.batches: must be poisson with privacy.accountant: rdp"),
        ({"local__gradients": []}, "local.gradients: must start with per_sample .* got nothing"),
        ({"local__gradients": [{"name": "per_sample", "clip": 1.0}]}, "local.gradients: must start with per_sample"),
        ({"privacy": {**PRIVACY, "epsilon": 1.0}}, "privacy: epsilon must be left out with unit: sample"),
        ({"algorithm": "d_psgd", "topology": "ring", "world": {}, "local__steps": 1}, "privacy.unit: must be client"),
        ({"world__dispatch__policy": "oort"}, "world.dispatch.policy: must not depend on losses"),
        ({"algorithm": "fedadmm_in"}, "algorithm: must not be fedadmm_in"),
    ],
)
def test_what_shows_more_is_refused(changes: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        parse_scenario(private(**changes))


def test_an_algorithm_that_looks_at_samples_itself_is_refused(tmp_path: Any) -> None:
    with pytest.raises(RunFailed, match=r"must not use task.y where privacy.unit is sample"):
        raysim.run(private(algorithm="fed_rod", model__personal=["head"]), out=tmp_path, inline=True)
