"""Runs whose numbers follow schedules, by hand."""

from typing import Any

import pytest
from by_hand import x
from conftest import Raw, Simulate, quadratic

from raysim import ScenarioError, parse_scenario

HALVES: Raw = {"name": "exponential", "start": 0.5, "factor": 0.5}  # 0.5, 0.25, 0.125 ...
ONE: Raw = {"dispatch": {"picks": [[0], [0], [0]]}}


def descent(algorithm: Any = "fedavg", world: Raw = ONE, lr: Any = 0.5, **more: Any) -> Raw:
    """Clients whose optimum is 0, from x = 1 on: a step multiplies x by 1 - lr."""
    raw = quadratic([0.0, 0.0], algorithm, world, 3, start=1.0, **more)
    return {**raw, "local": {"batch_size": None, "lr": lr}}


def test_a_rate_that_halves_each_round(simulate: Simulate) -> None:
    assert x(simulate, descent(lr=HALVES)) == pytest.approx(0.5 * 0.75 * 0.875)


def test_a_stale_client_trains_at_the_rate_of_its_dispatch(simulate: Simulate) -> None:
    """Client 1 starts in round 0 and arrives in round 2, alone in its buffer: it moves from 1 by 0.5, whatever client 0
    has done meanwhile, which moved by 0.5 and then by a quarter of the rest."""
    world = {"dispatch": {"picks": [[0, 1], [0], []]}, "delay": {"name": "scripted", "delays": [[0, 0], [2.0]]}}
    algorithm = {"name": "fedbuff", "buffer": 1, "staleness": "none"}
    assert x(simulate, descent(algorithm, world, lr=HALVES)) == pytest.approx(0.5 * 0.75 - 0.5)


def test_over_versions_the_rate_follows_the_servers_steps(simulate: Simulate) -> None:
    """The second of three rounds has no step, because its update arrives late and is discarded."""
    world = {"dispatch": {"picks": [[0], [0], [1]]}, "delay": {"name": "scripted", "delays": [[0.0, 1.0], [0.0]]}}
    raw = descent(world=world, lr={**HALVES, "over": "versions"})
    assert x(simulate, raw) == pytest.approx(0.5 * 0.75)
    assert x(simulate, {**raw, "local": {**raw["local"], "lr": HALVES}}) == pytest.approx(0.5 * 0.875)


def test_over_time_in_a_world_without_rounds(simulate: Simulate) -> None:
    """One client is always under way for 2 s: it starts at 0, 2 and 4 s, when the rate is 0.5, 0.125 and 0.03125."""
    world = {"dispatch": {"concurrency": 1}, "delay": {"name": "constant", "value": 2.0, "unit": "seconds"}}
    algorithm = {"name": "fedbuff", "buffer": 1}
    raw = descent(algorithm, world, lr={**HALVES, "over": "time"})
    assert x(simulate, raw) == pytest.approx(0.5 * 0.875 * 0.96875)
    with pytest.raises(ScenarioError, match=r"local\.lr\.over: must be versions or time"):
        parse_scenario({**raw, "local": {**raw["local"], "lr": HALVES}})


def test_numbers_of_the_algorithm_and_of_its_rule(simulate: Simulate) -> None:
    """The server moves by 1, 0.5 and 0.25 of the way that clients moved."""
    algorithm = {"name": "fedavg", "server": {"name": "sgd", "lr": {**HALVES, "start": 1.0}}}
    assert x(simulate, descent(algorithm)) == pytest.approx(0.5 * 0.75 * 0.875)
    buffered = {"name": "fedbuff", "buffer": 1, "server_lr": {**HALVES, "start": 1.0}}
    assert x(simulate, descent(buffered)) == pytest.approx(0.5 * 0.75 * 0.875)


def test_a_proximal_weight_that_grows(simulate: Simulate) -> None:
    """Two steps of rate 0.5 from x with weight mu of the pull: x - x / 2, then x / 2 - (x / 2 - mu x / 2) / 2."""
    algorithm = {"name": "fedprox", "mu": {"name": "polynomial", "start": 0.0, "end": 1.0, "length": 2}}
    raw = descent(algorithm)
    raw["local"] |= {"steps": 2}
    assert x(simulate, raw) == pytest.approx(0.25 * (0.25 + 0.5 / 4) * 0.5)


def test_an_algorithm_has_no_steps(simulate: Simulate) -> None:
    with pytest.raises(ScenarioError, match=r"algorithm\.server_lr\.over: must be rounds, versions or time"):
        parse_scenario(descent({"name": "fedbuff", "server_lr": {**HALVES, "over": "steps"}}))


PEERS: Raw = {
    "name": "peers",
    "data": {"name": "quadratic", "centers": [0.0, 0.0, 0.0]},
    "model": {"name": "vector", "start": 1.0},
    "algorithm": "decfedavg",
    "topology": "complete",
    "run": {"rounds": 3},
}


def test_peers_follow_their_rounds(simulate: Simulate) -> None:
    result = simulate({**PEERS, "local": {"batch_size": None, "lr": HALVES}})
    assert result.vectors()["w"].flatten().tolist() == pytest.approx([0.5 * 0.75 * 0.875] * 3)


def test_over_the_steps_of_a_training_each_client_starts_anew(simulate: Simulate) -> None:
    """Two steps a round, at the rates 0.5 and 0.25."""
    raw = descent(lr={**HALVES, "over": "steps"})
    raw["local"] |= {"steps": 2}
    assert x(simulate, raw) == pytest.approx((0.5 * 0.75) ** 3)
    with pytest.raises(ScenarioError, match=r"local\.weight_decay\.over: must be rounds, versions or time"):
        parse_scenario({**raw, "local": {"weight_decay": {**HALVES, "over": "steps"}}})
