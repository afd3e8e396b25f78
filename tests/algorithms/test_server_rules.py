"""Rules by which a server moves, and aggregates of its updates: by hand, and by identities."""

import math
from typing import Any

import pytest
from by_hand import x
from conftest import Raw, Simulate, quadratic

from raysim import ScenarioError, parse_scenario


def constant(algorithm: Any, deltas: list[float], rounds: int = 1) -> Raw:
    """Clients that always send the same delta each, all of them in each round; x starts at 0."""
    slopes: Raw = {"data__curvatures": [0.0] * len(deltas), "data__slopes": [-delta for delta in deltas]}
    world = {"dispatch": {"picks": [list(range(len(deltas)))] * rounds}}
    return quadratic([0.0] * len(deltas), algorithm, world, rounds, **slopes)


def fedavg(**server: Any) -> Raw:
    return {"name": "fedavg", "server": server}


@pytest.mark.parametrize(
    ("algorithm", "first", "second"),
    [
        (fedavg(name="sgd"), 1.0, 2.0),
        (fedavg(name="sgd", lr=0.5), 0.5, 1.0),
        (fedavg(name="sgd", momentum=0.9), 1.0, 1.0 + 1.9),
        (fedavg(name="sgd", momentum=0.9, nesterov=True), 1.9, 1.9 + 1.0 + 0.9 * 1.9),
        ("fedavgm", 1.0, 1.0 + 1.9),
        # v starts at eps^2 = 0.25, m at 0
        (fedavg(name="adagrad", lr=1.0, eps=0.5), 1 / (math.sqrt(1.25) + 0.5), None),
        (fedavg(name="adam", lr=1.0, eps=0.5), 0.1 / (math.sqrt(0.2575) + 0.5), None),
        (fedavg(name="yogi", lr=1.0, eps=0.5), 0.1 / (math.sqrt(0.26) + 0.5), None),
        ({"name": "fedadagrad", "server": {"lr": 1.0, "eps": 0.5}}, 1 / (math.sqrt(1.25) + 0.5), None),
        ({"name": "fedadam", "server": {"lr": 1.0, "eps": 0.5}}, 0.1 / (math.sqrt(0.2575) + 0.5), None),
        ({"name": "fedyogi", "server": {"lr": 1.0, "eps": 0.5}}, 0.1 / (math.sqrt(0.26) + 0.5), None),
        # with the bias corrected and v from 0 on, each step of equal directions is lr
        (fedavg(name="adam", lr=0.5, eps=1e-8, initial=0.0, bias_correction=True), 0.5, 1.0),
        (fedavg(name="amsgrad", lr=0.5, bias_correction=True), 0.5, 1.0),
    ],
)
def test_two_steps_along_one(simulate: Simulate, algorithm: Any, first: float, second: float | None) -> None:
    assert x(simulate, constant(algorithm, [1.0])) == pytest.approx(first, abs=1e-6)
    if second is not None:
        assert x(simulate, constant(algorithm, [1.0], rounds=2)) == pytest.approx(second, abs=1e-6)


def test_a_second_step_of_yogi(simulate: Simulate) -> None:
    """v = 0.25, 0.26, 0.27; m = 0.1, 0.19."""
    steps = 0.1 / (math.sqrt(0.26) + 0.5) + 0.19 / (math.sqrt(0.27) + 0.5)
    algorithm = fedavg(name="yogi", lr=1.0, eps=0.5)
    assert x(simulate, constant(algorithm, [1.0], rounds=2)) == pytest.approx(steps, abs=1e-6)


SMALL: Raw = {
    "name": "small",
    "data": {"name": "digits", "clients": 8, "partition": {"name": "dirichlet_clients", "alpha": 0.5}},
    "model": {"name": "mlp", "hidden": [8]},
    "world": {"dispatch": {"per_round": 4}, "delay": {"name": "half_normal", "sigma": 1}},
    "run": {"rounds": 4, "evaluate_every": 2},
}
STEPPING = ["fedavg", "fedbuff", "ca2fl", "scaffold", "ditto", "fedprox"]


def digest(simulate: Simulate, algorithm: Any) -> str:
    return simulate({**SMALL, "algorithm": algorithm}).digest


def test_names_are_recipes(simulate: Simulate) -> None:
    assert digest(simulate, "fedavgm") == digest(simulate, fedavg(name="sgd", momentum=0.9))
    assert digest(simulate, "fedyogi") == digest(simulate, fedavg(name="yogi"))
    fadas = {"name": "fedbuff", "buffer": 3, "staleness": "none"}
    rule = {"name": "amsgrad", "lr": 1e-3, "delay_adaptive": "scaled"}
    assert digest(simulate, {"name": "fadas", "buffer": 3}) == digest(simulate, {**fadas, "server": rule})


@pytest.mark.parametrize("name", STEPPING)
def test_any_algorithm_that_sends_a_difference_takes_any_rule(simulate: Simulate, name: str) -> None:
    result = simulate({**SMALL, "algorithm": {"name": name, "server": "adam"}})
    assert result.info["status"] == "finished"
    assert result.digest != digest(simulate, name)


def test_keys_that_are_left_out_are_those_of_the_default_rule() -> None:
    raw = {**SMALL, "algorithm": {"name": "fadas", "server": {"lr": 0.5}}}
    assert parse_scenario(raw).resolved()["algorithm"]["server"]["delay_adaptive"] == "scaled"
    raw["algorithm"]["server"] = {"name": "yogi"}
    assert parse_scenario(raw).resolved()["algorithm"]["server"]["delay_adaptive"] == "none"


@pytest.mark.parametrize("name", ["fedasync", "fedadmm"])
def test_an_algorithm_that_sends_no_difference_has_no_rule(name: str) -> None:
    with pytest.raises(ScenarioError, match=r"algorithm\.server: unknown key"):
        parse_scenario({**SMALL, "algorithm": {"name": name, "server": "adam"}})


# --- aggregates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "deltas", "expected"),
    [
        ("mean", [1.0, 2.0, 9.0], 4.0),
        ("median", [9.0, 1.0, 2.0], 2.0),
        ("median", [9.0, 1.0, 2.0, 4.0], 3.0),
        ({"name": "trimmed_mean", "trim": 0.34}, [9.0, 1.0, 2.0], 2.0),
        ({"name": "trimmed_mean", "trim": 0.25}, [9.0, 1.0, 2.0, 4.0], 3.0),
        ({"name": "clip_norm", "max": 2.0}, [1.0, 2.0, -9.0], (1.0 + 2.0 - 2.0) / 3),
        ("majority", [3.0, -1.0, -9.0], -1.0),
        ("majority", [3.0, -3.0], 1.0),  # 0 has the sign of 1
        # Distances to the two nearest: 5, 2, 2, 5 and many; the first of the two best is taken
        ({"name": "krum", "byzantine": 1}, [0.0, 1.0, 2.0, 3.0, 100.0], 1.0),
        ({"name": "krum", "byzantine": 1, "keep": 2}, [0.0, 1.0, 2.0, 3.0, 100.0], 1.5),
        # Krum picks five of 10, 11, 13, 14, 16, 100 and -90, which are the first five; their median is 13, and the
        # three nearest to it are 13, 14 and 11
        ({"name": "bulyan", "byzantine": 1}, [10.0, 11.0, 13.0, 14.0, 16.0, 100.0, -90.0], (13.0 + 14.0 + 11.0) / 3),
    ],
)
def test_aggregates_by_hand(simulate: Simulate, aggregate: Any, deltas: list[float], expected: float) -> None:
    raw = constant({"name": "fedavg", "weights": "uniform", "aggregate": aggregate}, deltas)
    assert x(simulate, raw) == pytest.approx(expected, abs=1e-5)


def test_an_aggregate_keeps_the_sum_of_the_weights(simulate: Simulate) -> None:
    """FedBuff divides by its buffer, not by the factors' sum: one of two updates is stale by 3, and counts a half."""
    deltas: Raw = {"data__curvatures": [0.0, 0.0], "data__slopes": [-2.0, -4.0]}
    world = {
        "dispatch": {"picks": [[0], [], [], [1]]},
        "delay": {"name": "scripted", "delays": [[3.0], [0.0]]},
        "staleness": "rounds",
    }
    algorithm = {"name": "fedbuff", "buffer": 2, "aggregate": "median"}
    raw = quadratic([0.0, 0.0], algorithm, world, 4, **deltas)
    assert x(simulate, raw) == pytest.approx((0.5 + 1.0) / 2 * 3.0, abs=1e-6)


def test_too_few_updates_are_refused_before_a_run_where_that_is_known_and_named_where_it_is_not() -> None:
    krum = {"name": "krum", "byzantine": 2}
    with pytest.raises(ScenarioError, match=r"algorithm\.buffer: must give a step at least 7 updates"):
        parse_scenario({**SMALL, "algorithm": {"name": "fedbuff", "buffer": 5, "aggregate": krum}})
    with pytest.raises(ScenarioError, match=r"world\.dispatch: must give a step at least 7 updates, .* got 4"):
        parse_scenario({**SMALL, "algorithm": {"name": "fedavg", "aggregate": krum}})
    with pytest.raises(ScenarioError, match=r"algorithm\.aggregate: unknown key"):
        parse_scenario({**SMALL, "algorithm": {"name": "ca2fl", "aggregate": "median"}})
