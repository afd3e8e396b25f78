"""Delays that follow the work that clients really do."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, computed, digits
from witness import LatePool, WitnessPool, execute

import raysim
from actors import InlinePool
from raysim import ScenarioError, parse_scenario, run

SPEED, UP, DOWN, LATENCY = 2e6, 1e5, 5e5, 0.25
COMPUTE = computed(SPEED, UP, DOWN, latency_s=LATENCY)
UNEVEN = COMPUTE | {"flops_per_s": {"name": "log_normal", "median": SPEED, "sigma": 1.0}}
FLOPS = 3 * 2 * (64 * 16 + 16 * 10)  # of a sample, forward and backward, of the MLP 64-16-10


def scenario(algorithm: Any, dispatch: Raw, delay: Raw = COMPUTE, **more: Any) -> Raw:
    local = {"lr": 0.5, "batch_size": None, "epochs": 30}
    more = {"run__rounds": 6, "run__evaluate_every": 3, "resources__chunk": 1} | more
    return digits(algorithm=algorithm, world={"dispatch": dispatch, "delay": delay}, local=local, **more)


def test_a_client_that_stops_early_arrives_early(simulate: Simulate) -> None:
    """Its time is latency, download, the gradients that it really took and upload, to the microsecond."""
    result = simulate(scenario({"name": "fedadmm_in", "convexity": 5.0}, {"per_round": 5}))
    used = result.pandas("updates").query("status == 'used'")
    assert used.local_steps.nunique() > 3
    stopped = used.residual <= used.tolerance
    assert stopped.sum() > 20
    assert (used.samples_seen == (used.local_steps + stopped) * used.samples).all()  # the last gradient said stop
    expected = LATENCY + used.down_bytes / DOWN + FLOPS * used.samples_seen / SPEED + used.up_bytes / UP
    np.testing.assert_allclose(used.arrived_at - used.dispatched_at, expected, atol=1e-6)


@pytest.mark.parametrize("dispatch", [{"per_round": 5}, {"per_round": 5, "round_s": 1.5}])
def test_where_nobody_stops_early_nothing_is_different(simulate: Simulate, dispatch: Raw) -> None:
    """A criterion that nobody meets, without memory, is FedADMM, whose timeline is known beforehand: the same bits."""
    planned = simulate(scenario("fedadmm", dispatch, UNEVEN))
    never = {"name": "fedadmm_in", "convexity": 1e-12, "memory": 0.0}
    followed = simulate(scenario(never, dispatch, UNEVEN))
    assert followed.info["digest"]["model"] == planned.info["digest"]["model"]
    columns = ["client", "status", "dispatched_at", "arrived_at", "version", "staleness", "weight", "samples_seen"]
    tables = [result.pandas("updates")[columns] for result in (planned, followed)]
    known = tables[0].status == "used"
    assert tables[0][known].equals(tables[1][known])
    assert tables[0].drop(columns="arrived_at").equals(tables[1].drop(columns="arrived_at"))


WORLDS = [
    ("toys:Leisurely", {"per_round": 6, "round_s": 0.9}),
    ("toys:Leisurely", {"per_round": 6}),
    ("toys:Hesitant", {"per_round": 6, "round_s": 0.9}),
    ("toys:Hesitant", {"concurrency": 6}),
]


@pytest.mark.parametrize(("algorithm", "dispatch"), WORLDS)
def test_a_clients_state_is_kept_only_if_its_update_was_used(algorithm: str, dispatch: Raw, tmp_path: Any) -> None:
    """Counting clients remember as many trainings as were used, though all that are dispatched are trained."""
    pool = WitnessPool()
    raw = scenario(algorithm, dispatch, UNEVEN, run__rounds=15, run__save_clients=True)
    updates = execute(raw, tmp_path, pool).pandas("updates")
    used = updates[updates.status == "used"]
    remembered = Counter({client: int(state["times"]) for client, state in pool.client_states.items()})
    assert +remembered == Counter(used.client)
    if "round_s" in dispatch and algorithm == "toys:Leisurely":
        assert (updates.status == "discarded").sum() > 3
    arrived = updates[updates.arrived_at.notna()]
    assert (arrived.arrived_at > arrived.dispatched_at + LATENCY).all()
    steps = arrived[arrived.local_steps.notna()].groupby("client").local_steps
    assert (steps.nunique() <= 2).all()


@pytest.mark.parametrize("often", [{}, {"every_rounds": 1}])
@pytest.mark.parametrize("round", [{}, {"round_s": 1.5}])
def test_a_fork_measures_what_its_past_did_not_need(
    often: Raw, round: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same however far the engine was ahead of what it had written, which more workers let it be."""
    raw = scenario({"name": "fedadmm_in", "convexity": 5.0}, {"per_round": 5, **round}, UNEVEN)
    raw["run"]["checkpoint"] = {"at_end": False, **often}
    forks = []
    for pool in (InlinePool, LatePool):
        monkeypatch.setattr("raysim.runs.place.InlinePool", pool)
        whole = run(raw, out=tmp_path / pool.__name__, inline=True)
        forks.append(raysim.fork(whole.folder, 3, ["algorithm.convexity=0.5"], out=tmp_path / "forks", inline=True))
    one, other = forks
    assert one.digest == other.digest != whole.digest


def test_updates_that_need_every_one_of_them_are_stacked(simulate: Simulate) -> None:
    result = simulate(scenario("toys:Patient", {"per_round": 4}, UNEVEN))
    assert result.info["totals"]["used"] == 24


@pytest.mark.parametrize("algorithm", ["toys:Foreseeing", "toys:LeisurelyForeseeing"])
def test_predictions_take_time_too(algorithm: str, simulate: Simulate) -> None:
    """A sample that only passes forward takes a third of one that is trained on."""
    uneven = {"name": "iid", "sizes": {"name": "power_law", "exponent": 1.0}}
    raw = scenario(algorithm, {"per_round": 5}, public={"samples": 20}, data__partition=uneven)
    result = simulate(raw)
    used = result.pandas("updates").query("status == 'used'")
    assert used.samples.nunique() > 5
    assert (used.samples_seen == 30 * used.samples).all()
    passed = used.samples_seen + (2 * 20 + used.samples) / 3
    expected = LATENCY + used.down_bytes / DOWN + FLOPS * passed / SPEED + used.up_bytes / UP
    np.testing.assert_allclose(used.arrived_at - used.dispatched_at, expected, atol=1e-6)


def test_a_dry_run_says_that_it_cannot_know(tmp_path: Any) -> None:
    made = parse_scenario(scenario("fedadmm_in", {"per_round": 5}))
    with pytest.raises(ScenarioError, match="must not depend on how long clients really train in a dry run"):
        run(made, out=tmp_path, dry=True)
    assert not list(tmp_path.iterdir())


def test_a_dry_run_measures_updates_that_need_public_samples(simulate: Simulate) -> None:
    raw = scenario("toys:WantsPublic", {"per_round": 5}, public={"samples": 20})
    assert simulate(raw, "--dry").info["totals"] == simulate(raw).info["totals"]
