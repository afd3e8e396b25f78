"""Directed graphs: who sends to whom, what each message weighs, and what is told of algorithms that do not fit."""

from typing import Any

import numpy as np
import pytest
from conftest import Raw, Simulate
from peers_runs import centers, last, pulled

import raysim
from raysim.parts.errors import ScenarioError
from raysim.scenario.checks import notes_of
from raysim.world import Topology
from raysim.world.mixing import limit
from raysim.world.shift_topology import DirectedRing, ExponentialGraph
from raysim.world.topology import Edges, Ring

THREE: Raw = {"name": "edges", "edges": [[0, 1], [0, 2], [1, 2], [2, 0]], "directed": True}


def matrices(topology: Topology, peers: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns R, by what peers hear, and A, by what they send."""
    pushed = np.zeros((peers, peers))
    for peer, near in enumerate(topology.neighbours(peers, 0)):
        pushed[list(near.receivers), peer] = near.shares
        pushed[peer, peer] = 1 - sum(near.shares)
    return pulled(topology, peers), pushed


def test_peers_hear_and_send_along_the_edges() -> None:
    senders = {0: (2,), 1: (0,), 2: (0, 1)}
    receivers = {0: (1, 2), 1: (2,), 2: (0,)}
    near = Edges(edges=((0, 1), (0, 2), (1, 2), (2, 0)), directed=True).neighbours(3, 0)
    assert {peer: one.senders for peer, one in enumerate(near)} == senders
    assert {peer: one.receivers for peer, one in enumerate(near)} == receivers
    assert [one.receivers for one in DirectedRing().neighbours(4, 0)] == [(1,), (2,), (3,), (0,)]
    assert ExponentialGraph().neighbours(6, 0)[1].receivers == (2, 3, 5)


def test_weights_are_equal_over_what_is_heard_and_what_is_sent() -> None:
    pulled, pushed = matrices(Edges(edges=((0, 1), (0, 2), (1, 2), (2, 0)), directed=True, **EQUAL), 3)
    assert pulled == pytest.approx(np.array([[1 / 2, 0, 1 / 2], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))
    assert pushed == pytest.approx(np.array([[1 / 3, 0, 1 / 2], [1 / 3, 1 / 2, 0], [1 / 3, 1 / 2, 1 / 2]]))
    assert raysim.parse_scenario(centers([[0.0]] * 3, 1, topology=THREE)).topology.weights.name == "equal"


EQUAL: Any = {"weights": {"name": "equal"}}


@pytest.mark.parametrize("weights", ["equal", "metropolis", "uniform", "neighbours", "own"])
@pytest.mark.parametrize("edges", [THREE, {"name": "exponential"}, {"name": "star"}], ids=lambda raw: raw["name"])
def test_rows_of_what_is_heard_and_columns_of_what_is_sent_sum_to_one(edges: Raw, weights: str) -> None:
    raw = centers([[0.0]] * 3, 1, topology={**edges, "weights": weights}, algorithm="toys_peers:PushSum")
    pulled, pushed = matrices(raysim.parse_scenario(raw).topology, 3)
    assert pulled.min() >= 0 and pushed.min() >= 0
    assert pulled.sum(1) == pytest.approx(1) and pushed.sum(0) == pytest.approx(1)
    if edges["name"] == "star":
        assert (pushed == pulled.T).all()


def test_push_sum_by_hand(simulate: Simulate) -> None:
    """Two rounds on a graph of three, and the limit 3, which the sums alone do not reach."""
    x = [[1.0], [2.0], [6.0]]
    raw = centers(x, 2, topology=THREE, algorithm="toys_peers:PushSum")
    assert last(simulate, raw) == pytest.approx([3.277778, 1.777778, 3.944444], abs=1e-6)
    raw["run"]["rounds"] = 100
    assert last(simulate, raw) == pytest.approx([3, 2, 4], abs=1e-5)
    ring = centers(x, 3, topology="directed_ring", algorithm="toys_peers:PushSum")
    assert last(simulate, ring) == pytest.approx([3.25, 3.125, 2.625], abs=1e-6)


def test_d_psgd_on_rows_alone_ends_near_another_optimum(simulate: Simulate) -> None:
    """Peers count 4/3, 2/3 and 1, so the optimum is near 1.454545 instead of 1.5."""
    raw = {**centers([[0.0], [1.0], [4.0]], 1200, topology=THREE), "algorithm": "d_psgd"}
    raw["data"]["curvatures"], raw["run"] = [1.0, 2.0, 1.0], {"rounds": 1200, "evaluate_every": 1200}
    raw["local"] = {"steps": 1, "lr": 0.01, "batch_size": None}
    assert last(simulate, raw) == pytest.approx([1.452953, 1.435531, 1.482012], abs=1e-5)
    raw["algorithm"] = "decfedavg"  # which steps before it mixes
    assert last(simulate, raw) == pytest.approx([1.466037, 1.442526, 1.455250], abs=1e-5)
    (note,) = notes_of(raysim.parse_scenario(raw))
    assert "peer 0 1.333 times as much as in the plain mean, and peer 1 0.6667 times" in note


def test_what_all_agree_on_is_told_only_where_peers_count_differently() -> None:
    assert limit(Ring().neighbours(8, 0)).tolist() == pytest.approx([1.0] * 8)
    assert limit(Edges(edges=((0, 1), (0, 2), (1, 2), (2, 0)), directed=True, **EQUAL).neighbours(3, 0)) == (
        pytest.approx(3 * np.array([4, 2, 3]) / 9)
    )
    assert not notes_of(raysim.parse_scenario(centers([[0.0]] * 4, 1)))
    assert notes_of(raysim.parse_scenario(centers([[0.0]] * 4, 1, topology={"name": "star", "weights": "neighbours"})))


def test_algorithms_that_need_symmetric_weights_refuse_directed_graphs() -> None:
    raw = {**centers([[0.0]] * 4, 1, topology="directed_ring"), "algorithm": "dsgt", "local": {"steps": 1}}
    with pytest.raises(ScenarioError, match="topology: must be undirected for dsgt, whose equations need it, got dire"):
        raysim.parse_scenario(raw)


def test_a_directed_graph_without_a_way_back_is_refused() -> None:
    one_way = Edges(edges=((0, 1), (1, 2)), directed=True)
    (problem,) = one_way.problems(3, 0, 1)
    assert "no way leads to peer 0 from [1, 2]; add edges" in problem
