"""Who is picked: each policy's picks, worked out by hand or counted, through timelines and the public path."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate, digits, override, quadratic

from raysim import ScenarioError, parse_scenario
from raysim.algorithms import Round
from raysim.world import Candidates, Reports, World
from raysim.world.clock import Horizon
from raysim.world.policies.policy import BySamples, Stratified, WeightedPolicy
from raysim.world.server_happening import Stepped
from raysim.world.server_timeline import ServerTimeline

SECONDS = {"name": "constant", "value": 1.0, "unit": "seconds"}
EACH: dict[str, Raw] = {
    "uniform": {},
    "by_samples": {},
    "weighted": {"weights": (1.0, 2.0, 3.0, 4.0, 5.0)},
    "round_robin": {},
    "stratified": {"by": "size", "strata": 2},
}


def candidates(idle: list[int], samples: list[int], labels: Any = None) -> Candidates:
    held = np.array(samples)
    return Candidates(np.array(idle), held, np.zeros_like(held), 0, Reports.none(len(held)), labels)


def drawn(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def picks(
    dispatch: Raw, clients: int, rounds: int, delay: Raw = SECONDS, late: Any = "keep", empty: bool = False, **more: Any
) -> list[list[int]]:
    """The clients that each round picks, where all arrive within their round."""
    world = World.model_validate({"dispatch": dispatch, "delay": delay, **more})
    timeline = ServerTimeline(world, Round(late, empty), np.arange(clients) + 1, Horizon(rounds), seed=0)
    return [[member.client for member in step.members] for step in timeline if isinstance(step, Stepped)]


def test_clients_with_more_samples_are_picked_more_often() -> None:
    some = candidates([0, 1, 3], [1, 100, 0, 9])
    picked = [BySamples().pick(some, 1, drawn(seed))[0] for seed in range(200)]
    assert picked.count(1) > 5 * picked.count(3) > 5 * picked.count(0)
    assert sorted(BySamples().pick(some, 9, drawn(0))) == [0, 1, 3]


def test_clients_of_more_weight_are_picked_more_often_and_those_of_none_never() -> None:
    """Idle clients have weights 1, 3 and 0, and so the shares 1/4, 3/4 and none, within 4 deviations."""
    policy, some = WeightedPolicy(weights=(1.0, 3.0, 0.0, 9.0)), candidates([0, 1, 2], [5, 5, 5, 5])
    picked = [policy.pick(some, 1, drawn(seed))[0] for seed in range(400)]
    assert abs(picked.count(1) - 300) < 4 * np.sqrt(400 * 3 / 16)
    assert sorted(policy.pick(some, 3, drawn(0))) == [0, 1]
    assert policy.pick(candidates([2], [5, 5, 5, 5]), 1, drawn(0)) == []


def test_clients_take_turns() -> None:
    assert picks({"per_round": 2, "policy": "round_robin"}, clients=5, rounds=5) == [
        [0, 1],
        [2, 3],
        [4, 0],  # 4 has not been picked yet, and 0 is the lowest of those that were picked once
        [1, 2],
        [3, 4],
    ]


def test_a_client_that_was_under_way_at_its_turn_is_picked_as_soon_as_it_is_back() -> None:
    """Client 0 is under way for four rounds, in which client 1 is picked twice."""
    scripted = {"name": "scripted", "delays": ((3.5, 0.0), (0.0,) * 3, (0.0,) * 3)}
    world = World.model_validate({"dispatch": {"per_round": 1, "policy": "round_robin"}, "delay": scripted})
    steps = [h for h in ServerTimeline(world, Round("keep"), np.full(3, 1), Horizon(6), 0) if isinstance(h, Stepped)]
    picked = sorted((member.round, member.client) for step in steps for member in step.members)
    assert [client for _, client in picked] == [0, 1, 2, 1, 0, 2]


def test_each_label_gives_equally_many_clients() -> None:
    """Clients 0 to 3 have label 0 most often, 4 and 5 label 1, 6 label 2: two of each, but for the last."""
    most = np.array([0, 0, 0, 0, 1, 1, 2])
    labels = 1 + 5 * (most[:, None] == np.arange(3))
    for seed in range(50):
        picked = Stratified().pick(candidates(list(range(7)), [8] * 7, labels), 5, drawn(seed))
        assert Counter(most[picked].tolist()) == {0: 2, 1: 2, 2: 1}
        assert len(set(picked)) == 5
    ones = [Stratified().pick(candidates(list(range(7)), [8] * 7, labels), 1, drawn(seed))[0] for seed in range(300)]
    strata = Counter(most[ones].tolist())
    assert all(abs(times - 100) < 4 * np.sqrt(300 * 2 / 9) for times in strata.values())


def test_strata_by_size_are_of_equally_many_clients() -> None:
    """Six clients hold samples: the strata are the two smallest, the two in between and the two largest."""
    policy = Stratified(by="size", strata=3)
    some = candidates([0, 2, 3, 4, 5, 6], [30, 0, 10, 60, 20, 50, 40])
    assert policy.strata_of(some)[some.idle].tolist() == [1, 0, 2, 0, 2, 1]
    for seed in range(20):
        assert sorted(policy.strata_of(some)[policy.pick(some, 3, drawn(seed))]) == [0, 1, 2]


def test_labels_come_from_how_the_data_are_divided(simulate: Simulate) -> None:
    """With one label a client, four labels of four clients each, every round trains one of each; dry or not."""
    shards = {"name": "shards", "per_client": 1}
    raw = digits(world__dispatch={"per_round": 10, "policy": "stratified"}, world__delay="none", run__rounds=3)
    raw = override(raw, data__partition=shards, data__clients=40)
    for options in ((), ("--dry",)):
        result = simulate(raw, *options)
        held = result.pandas("partition").query("split == 'train'").sort_values("samples")
        most = held.groupby("client").label.last()
        for _, updates in result.pandas("updates").groupby("dispatched_at"):
            assert most[updates.client].nunique() == 10


@pytest.mark.parametrize("dispatch", [{"per_round": 2}, {"concurrency": 2}])
@pytest.mark.parametrize("name", EACH)
def test_any_policy_goes_with_any_dispatch(name: str, dispatch: Raw, simulate: Simulate) -> None:
    """And a dry run tells who is picked when."""
    keys = {key: list(value) if isinstance(value, tuple) else value for key, value in EACH[name].items()}
    world = {"dispatch": {**dispatch, "policy": {"name": name, **keys}}, "delay": SECONDS}
    raw = quadratic([1.0, 2.0, 3.0, 4.0, 5.0], {"name": "fedbuff", "buffer": 2}, world, rounds=5)
    run, dry = (simulate(raw, *options).pandas("updates") for options in ((), ("--dry",)))
    assert run[["client", "dispatched_at"]].equals(dry[["client", "dispatched_at"]])


@pytest.mark.parametrize(
    ("policy", "path", "text"),
    [
        ({"name": "weighted", "weights": [1.0]}, "weights", "must have a weight for each of 3 clients, got 1"),
        ({"name": "weighted", "weights": [0.0] * 3}, "weights", "must have a weight of more than 0"),
        ({"name": "stratified"}, "by", "must be size, because the data have no labels"),
        ({"name": "stratified", "by": "size"}, "strata", "must be at most the number of clients, 3, got 4"),
    ],
)
def test_a_policy_that_does_not_fit_the_data_is_refused(policy: Raw, path: str, text: str) -> None:
    raw = quadratic([1.0, 2.0, 3.0], "fedavg", {"dispatch": {"per_round": 2, "policy": policy}}, rounds=2)
    with pytest.raises(ScenarioError, match=f"world.dispatch.policy.{path}: {text}"):
        parse_scenario(raw)


def test_a_policy_beside_a_list_of_picks_is_refused() -> None:
    raw = quadratic([1.0], "fedavg", {"dispatch": {"picks": [[0]], "policy": "by_samples"}}, rounds=1)
    with pytest.raises(ScenarioError, match=r"world.dispatch: policy goes with per_round, concurrency"):
        parse_scenario(raw)


def test_each_client_is_picked_with_its_probability_whoever_else_is() -> None:
    """It holds for 20 clients over 1000 rounds, within 4 deviations; their number has the variance of its law."""
    found = picks({"probability": 0.3}, clients=20, rounds=1000, late="discard", empty=True)
    times = Counter(client for picked in found for client in picked)
    assert all(abs(times[client] - 300) < 4 * np.sqrt(1000 * 0.3 * 0.7) for client in range(20))
    sizes = np.array([len(picked) for picked in found])
    assert len(sizes) == 1000
    assert sizes.var() == pytest.approx(20 * 0.3 * 0.7, rel=0.2)


def test_a_client_is_picked_in_the_same_rounds_however_many_others_there_are() -> None:
    few, many = ([{0, 1, 2} & set(p) for p in picks({"probability": 0.5}, n, 30, empty=True)] for n in (3, 9))
    assert few == many


def test_all_are_picked_with_probability_one_and_none_that_is_under_way() -> None:
    assert picks({"probability": 1.0}, clients=3, rounds=2) == [[0, 1, 2]] * 2
    late = {"name": "scripted", "delays": ((1.5,), (0.0, 0.0), (0.0, 0.0))}
    assert picks({"probability": 1.0}, clients=3, rounds=2, delay=late) == [[1, 2], [0, 1, 2]]
