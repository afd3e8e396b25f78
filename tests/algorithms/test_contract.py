"""Laws that every algorithm keeps. A new one joins by being registered."""

from collections import Counter
from typing import Any

from conftest import Simulate, digits, quadratic
from witness import WitnessPool, execute

from raysim.workers.requests import TrainRequest


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
    world = {"dispatch": {"picks": [[0], [0, 1]]}, "delay": {"name": "scripted", "delays": [[0.0, 0.0], [0.0]]}}
    buffered = {"name": "toys:Buffered", "size": 3}
    result = simulate(quadratic([1.0, 1.0], buffered, world, 2))
    assert result.vectors()["w"].tolist() == [1.0 + 2.0 + 1.0]
