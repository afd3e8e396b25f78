"""Laws that every algorithm keeps. A new one joins by being registered."""

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
from conftest import Simulate, digits, quadratic
from server_runs import ON_RAY, with_own_models
from witness import WitnessPool, execute

from actors import InlinePool, Job, Request
from actors.job import values_of
from raysim import RunFailed, parse_scenario, run
from raysim.laws.runs import PicklingPool
from raysim.workers.requests import TrainRequest

TOYS = ["toys:Counting", "toys:Median", "toys:Heads"]
# What a bare vector will not do for, and what comes near in so few rounds, but not as near: `raysim test` tries that.
OTHERS = ["local_only", "knn_per", "moon", "fedproto", "fed_ft", "hfcl", "feddf", "feddle", "center", "fedat"]
OTHERS += ["flora", "flexlora"]


class WatchingPool(PicklingPool):
    """Compares what requests name with a copy made before, and pickles what jobs leave."""

    def submit(self, group: str, request: Request[Any, Any], **options: Any) -> Job[Any, Any]:
        contents = [value.content for value in values_of(request)]
        given = [c if isinstance(c, dict) else {"": c} for c in contents if isinstance(c, dict | np.ndarray)]
        before = copy.deepcopy(given)
        job = super().submit(group, request, **options)
        for old, new in zip(before, given, strict=True):
            assert old.keys() == new.keys()
            assert all(np.array_equal(old[key], new[key]) for key in old), f"{request.name} changed what it was given"
        return job


# `raysim test` holds all algorithms to the same bits again; these are one of each kind, with clients' own models.
KINDS = [*ON_RAY, "ca2fl", "center", "fedadmm_insa", "fedeq", "knn_per", *TOYS]


@pytest.mark.parametrize("algorithm", KINDS)
def test_a_seed_decides_all_bits_and_workers_change_nothing_that_they_are_given(algorithm: str, tmp_path: Any) -> None:
    """Clients' own models too, though all that is kept is pickled on the way; and another seed gives other bits."""
    raw = with_own_models(algorithm, run__rounds=5, run__evaluate_every=5)
    one = execute(raw, tmp_path / "one", InlinePool()).info["digest"]
    assert one == execute(raw, tmp_path / "again", WatchingPool()).info["digest"]
    other = execute({**raw, "seed": 1}, tmp_path / "other", InlinePool()).info["digest"]
    assert one["model"] != other["model"] and one["tables"] != other["tables"]


def trained(pool: WitnessPool) -> list[int]:
    """The clients of all trainings."""
    requests = [request for request, _ in pool.seen if isinstance(request, TrainRequest)]
    return [member.client for request in requests for member in request.members]


def test_what_is_never_used_is_never_trained(tmp_path: Any) -> None:
    """FedAvg at sigma 20: of 400 dispatches about 16 are in time; only they are trained."""
    world = {"dispatch": {"per_round": 10}, "delay": {"name": "half_normal", "sigma": 20}}
    raw = digits(algorithm="fedavg", world=world, run__rounds=40, data__clients=200)
    pool = WitnessPool()
    totals = execute(raw, tmp_path, pool).info["totals"]
    assert len(trained(pool)) == totals["used"]
    assert 0 < len(trained(pool)) < 40
    assert totals["dispatched"] > 300


def test_a_clients_state_is_kept_only_if_its_update_was_used(tmp_path: Any) -> None:
    """Counting clients count the trainings that they remember: as many as used, though most updates come too late."""
    world = {"dispatch": {"per_round": 10}, "delay": {"name": "half_normal", "sigma": 2}}
    raw = digits(algorithm="toys:Punctual", world=world, run__rounds=20, run__save_clients=True)
    pool = WitnessPool()
    totals = execute(raw, tmp_path, pool).info["totals"]
    remembered = Counter({client: int(state["times"]) for client, state in pool.client_states.items()})
    assert +remembered == Counter(trained(pool))
    assert totals["discarded"] > totals["used"] / 2


def test_a_client_that_comes_twice_in_one_step_sees_its_own_state(simulate: Simulate) -> None:
    """Dispatched in rounds 0 and 1, both used by the step of round 1: its second update follows on its first."""
    world = {
        "dispatch": {"picks": [[0], [0, 1]]},
        "delay": {"name": "scripted", "delays": [[0.0, 0.0], [0.0]]},
    }
    buffered = {"name": "toys:Buffered", "size": 3}
    result = simulate(quadratic([1.0, 1.0], buffered, world, 2))
    assert result.vectors()["w"].tolist() == [1.0 + 2.0 + 1.0]


@pytest.mark.parametrize("algorithm", ["toys:Overwriting", "toys:OverwritingServer"])
def test_an_algorithm_that_changes_what_it_was_given_ends_the_run(algorithm: str, tmp_path: Any) -> None:
    scenario = parse_scenario(digits(algorithm=algorithm))
    with pytest.raises(RunFailed, match="must not change in place what it is given, but changed 'w' of "):
        run(scenario, out=tmp_path, inline=True)
