"""Algorithms for directed graphs against numbers worked out by hand, and what their sums keep."""

from typing import Any

import pytest
from conftest import Raw, Simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from peers_runs import SECONDS, peers

import raysim
from raysim.laws.algorithm import masses

# Peer 0 sends to 1 and 2, peer 1 to 2, and peer 2 to 0: columns of A are (1/3, 1/3, 1/3), (0, 1/2, 1/2), (1/2, 0, 1/2).
FOUR: Raw = {"name": "edges", "edges": [[0, 1], [0, 2], [1, 2], [2, 0]], "directed": True}
HALF: Raw = {"name": "complete", "weights": {"name": "neighbours", "beta": 0.5}}  # rows and columns of 1/2, 1/4, 1/4


def final(simulate: Simulate, algorithm: Any, rounds: int, topology: Any = FOUR, **more: Any) -> list[float]:
    """The last x of peers with the losses x^2 / 2, (x - 1)^2 and (x - 4)^2 / 2, from 1, with the rate 0.1."""
    raw: Raw = {
        "name": "push",
        "data": {"name": "quadratic", "centers": [0.0, 1.0, 4.0], "curvatures": [1.0, 2.0, 1.0]},
        "model": {"name": "vector", "start": 1.0},
        "algorithm": algorithm,
        "topology": topology,
        "local": {"lr": 0.1, "batch_size": None, "steps": 1},
        "run": {"rounds": rounds},
    }
    found: list[float] = simulate({**raw, **more}).vectors()["w"][:, 0].tolist()
    return found


def averaged(simulate: Simulate, algorithm: Any, rounds: int, topology: Any = FOUR, **more: Any) -> list[float]:
    """Push-sum averaging of peers that first train to 1, 2 and 6."""
    data = {"name": "quadratic", "centers": [1.0, 2.0, 6.0]}
    return final(simulate, algorithm, rounds, topology, data=data, local={"lr": 1.0, "batch_size": None}, **more)


# --- averages ---------------------------------------------------------------------------------------------------------


def test_push_sum_by_hand(simulate: Simulate) -> None:
    """Numerators (3.33, 1.33, 4.33), then these; weights (5/6, 5/6, 4/3), then those; models are the ratios."""
    shown = [averaged(simulate, {"name": "toys_peers:Numerators", "shown": part}, 2) for part in ("w", "weight")]
    assert shown[0] == pytest.approx([3.277778, 1.777778, 3.944444], abs=1e-6)
    assert shown[1] == pytest.approx([0.944444, 0.694444, 1.361111], abs=1e-6)
    assert averaged(simulate, "push_sum", 2) == pytest.approx([3.470588, 2.56, 2.897959], abs=1e-6)


def test_push_sum_comes_to_the_mean_and_numerators_alone_do_not(simulate: Simulate) -> None:
    assert averaged(simulate, "push_sum", 60) == pytest.approx([3.0] * 3, rel=1e-6)
    assert averaged(simulate, "toys_peers:Numerators", 60) == pytest.approx([3.0, 2.0, 4.0], rel=1e-6)


def test_where_all_send_to_one_weights_stay_1(simulate: Simulate) -> None:
    """Each takes the mean of its own number and that of the peer before it."""
    assert averaged(simulate, "push_sum", 3, "directed_ring") == [3.25, 3.125, 2.625]
    shown = {"name": "toys_peers:Numerators", "shown": "weight"}
    assert averaged(simulate, shown, 3, "directed_ring") == [1.0] * 3
    assert averaged(simulate, shown, 9, "complete") == [1.0] * 3  # of three thirds


def test_what_is_sent_may_be_added_a_round_later(simulate: Simulate) -> None:
    algorithm = {"name": "push_sum", "overlap": 1}
    assert averaged(simulate, algorithm, 3) == pytest.approx([5.591837, 1.310345, 2.246154], abs=1e-6)
    for part, wanted in (("w", [2.537037, 0.527778, 2.027778]), ("weight", [0.453704, 0.402778, 0.902778])):
        shown = {"name": "toys_peers:Numerators", "overlap": 1, "shown": part}
        assert averaged(simulate, shown, 3) == pytest.approx(wanted, abs=1e-6)
    assert averaged(simulate, algorithm, 120) == pytest.approx([3.0] * 3, rel=1e-5)


def test_rounds_do_not_wait_for_messages_that_are_added_later(simulate: Simulate) -> None:
    """Messages take 5 s, and trainings one: a round is over with the messages of two rounds before."""
    delay = {"name": "constant", "value": 1.0, "unit": "seconds"}
    world = {"delay": delay, "edge_delay": {"name": "constant", "value": 5.0}}
    raw = peers(algorithm={"name": "sgp", "overlap": 2}, world=world)
    rounds = simulate(raw, "--dry").pandas("steps")
    assert rounds.virtual_time.tolist() == [1.0, 2.0, 6.0, 7.0, 8.0, 12.0]
    assert rounds.staleness_mean.tolist()[2:] == [5.0, 5.0, 5.0, 5.0]


def test_each_message_counts_once_where_nobody_waits(simulate: Simulate) -> None:
    """Messages that come late or overtake each other are all added: the mean is the same as without delays."""
    world = {"synchronous": False, "delay": SECONDS, "edge_delay": {"name": "exponential", "mean": 2.0}}
    assert averaged(simulate, "push_sum", 120, world=world) == pytest.approx([3.0] * 3, rel=1e-5)


@pytest.mark.parametrize(("on_loss", "limit"), [("gone", 3.4), ("kept", 3.0)])
def test_a_lost_message_takes_its_share_along_unless_the_sender_keeps_it(
    simulate: Simulate, on_loss: str, limit: float
) -> None:
    """With this seed, the first message of peer 0 is lost, and no other: half of 1, with half a weight."""
    world = {"loss": 0.01, "on_loss": on_loss}
    found = averaged(simulate, "push_sum", 60, "directed_ring", world=world, seed=950)
    assert found == pytest.approx([limit] * 3, rel=1e-6)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(
    algorithm=st.sampled_from(["sgp", "push_sum", "push_diging", {"name": "sgp", "overlap": 2}]),
    topology=st.sampled_from(
        [{"name": "exponential", "one_peer": True, "period_s": 3.0}, {"name": "matching", "period_s": 1.5}, FOUR]
    ),
    loss=st.sampled_from([0.0, 0.3, 0.9]),
    mean=st.sampled_from([0.1, 5.0]),
    probability=st.sampled_from([0.3, 0.7, 1.0]),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_sums_of_numerators_and_of_weights_stay_under_any_schedule(
    algorithm: Any, topology: Raw, loss: float, mean: float, probability: float, seed: int, data: st.DataObject
) -> None:
    """Without steps, with delays, losses that are kept or gone, and peers that come, go and hand over."""
    waits = isinstance(algorithm, dict)  # `overlap` is for peers that wait, and are always there
    there = {"name": "random", "probability": 1.0 if waits else probability, "slot": 0.7}
    world = {
        "delay": SECONDS,
        "edge_delay": {"name": "exponential", "mean": mean},
        "synchronous": waits or data.draw(st.booleans()),
        **({} if waits else {"availability": there, "leave": data.draw(st.sampled_from(["wait", "hand_over"]))}),
        "loss": loss,
        "on_loss": data.draw(st.sampled_from(["kept", "gone"])),
    }
    raw: Raw = {
        "name": "sums",
        "seed": seed,
        "data": {"name": "quadratic", "centers": [[float(peer), 1.0] for peer in range(3 if topology is FOUR else 6)]},
        "model": {"name": "vector", "start": 1.0},
        "algorithm": algorithm,
        "topology": topology,
        "local": {"lr": 1e-30, "batch_size": None, "steps": 1},
        "world": world,
        "run": {"rounds": 8},
    }
    found = list(masses(raysim.parse_scenario(raw)))
    assert {key for _, key, _, _ in found} == {"w", "weight"}
    for _, _, before, now in found:
        assert now == pytest.approx(before, rel=1e-6, abs=1e-6)


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "rounds", "wanted"),
    [
        ("sgp", 1, [1.14, 0.96, 1.0875]),
        ("sgp", 2, [1.216897, 0.983040, 1.141194]),
        ("sgp", 200, [1.665682, 1.383934, 1.566450]),  # a fixed rate leaves a gap to 1.5
        ("push_diging", 1, [1.14, 0.96, 1.0875]),
        ("push_diging", 2, [1.196309, 1.063040, 1.114663]),
        ("push_diging", 200, [1.5] * 3),
        ("push_pull", 1, [1.1, 0.95, 1.066667]),
        ("push_pull", 2, [1.191667, 1.066667, 1.103333]),
        ("push_pull", 200, [1.5] * 3),
    ],
)
def test_by_hand(simulate: Simulate, algorithm: str, rounds: int, wanted: list[float]) -> None:
    assert final(simulate, algorithm, rounds) == pytest.approx(wanted, abs=1e-5 if rounds == 200 else 1e-6)


def test_sgp_steps_and_then_mixes(simulate: Simulate) -> None:
    assert final(simulate, "sgp", 2, HALF) == pytest.approx([1.074375, 1.10375, 1.196875], abs=1e-6)
    assert final(simulate, "d_psgd", 2, HALF) == pytest.approx([0.935, 1.05, 1.395], abs=1e-6)


@pytest.mark.parametrize(
    ("pushing", "pulling", "local"),
    [("sgp", "decfedavg", {"epochs": 1}), ("push_diging", "dsgt", {"steps": 1}), ("push_pull", "dsgt", {"steps": 1})],
)
@pytest.mark.parametrize("topology", ["ring", "small_world"])
def test_on_undirected_graphs_it_is_another_one(
    simulate: Simulate, pushing: str, pulling: str, local: Raw, topology: str
) -> None:
    models = [simulate(peers(algorithm=name, topology=topology, local=local)) for name in (pushing, pulling)]
    assert models[0].info["digest"]["model"] == models[1].info["digest"]["model"]


@pytest.mark.parametrize(
    "topology", ["directed_ring", "exponential", {"name": "exponential", "one_peer": True}, "equi_static", "equi_dyn"]
)
def test_where_rows_and_columns_sum_to_1_sgp_is_decfedavg(simulate: Simulate, topology: Any) -> None:
    """With one step, or several."""
    for local in ({"steps": 1}, {"epochs": 1}):
        both = [
            simulate(peers(algorithm=name, topology=topology, local=local, run__rounds=3))
            for name in ("sgp", "decfedavg")
        ]
        assert both[0].info["digest"]["model"] == both[1].info["digest"]["model"]


def test_a_weight_travels_as_one_number(simulate: Simulate) -> None:
    sizes = [simulate(peers(algorithm=name, run__rounds=1)).pandas("exchanges").bytes for name in ("decfedavg", "sgp")]
    assert set(sizes[1] - sizes[0]) == {4}
