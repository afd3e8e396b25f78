"""Graphs that change: by rounds, by virtual time, by a trace of links, and by where peers are."""

from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from conftest import Raw, Simulate
from peers_runs import GOSSIP, centers, last, peers, pulled

import raysim
from raysim.parts.errors import ScenarioError
from raysim.world.matchings import Matcha, Matching, _plan, matchings
from raysim.world.random_topology import ErdosRenyi, Regular
from raysim.world.shift_topology import EquiDyn, EquiStatic
from raysim.world.topology import Line

SECOND: Raw = {"delay": {"name": "constant", "value": 1.0, "unit": "seconds"}}
X = [[1.0], [2.0], [3.0], [6.0]]


# --- by rounds --------------------------------------------------------------------------------------------------------


def test_one_peer_a_round_averages_a_power_of_two_of_peers_exactly(simulate: Simulate) -> None:
    one_peer = {"name": "exponential", "one_peer": True}
    assert last(simulate, centers(X, 1, topology=one_peer)) == [3.5, 1.5, 2.5, 4.5]
    assert last(simulate, centers(X, 2, topology=one_peer)) == [3.0] * 4
    gaps = simulate(centers(X, 2, topology=one_peer)).pandas("evaluations").query("metric == 'second_eigenvalue'").value
    assert gaps.tolist() == pytest.approx([0.5])
    six = centers([*X, [0.0], [0.0]], 3, topology=one_peer)
    assert last(simulate, six) == [1.625, 1.875, 2.125, 2.625, 2.25, 1.5]


def test_equi_dyn_mixes_one_shift_of_all_peers() -> None:
    x = np.array(X)[:, 0]
    seed = next(seed for seed in range(99) if EquiDyn().neighbours(4, seed)[0].senders == (1,))
    assert (pulled(EquiDyn(), 4, seed) @ x).tolist() == pytest.approx([1.75, 2.75, 5.25, 2.25])
    assert (pulled(EquiDyn(eta=0.5), 4, seed) @ x).tolist() == pytest.approx([1.375, 2.375, 4.125, 4.125])
    drawn = {EquiDyn().neighbours(7, 3, epoch)[0].senders for epoch in range(100)}
    assert drawn == {(peer,) for peer in range(1, 7)}


@pytest.mark.parametrize(
    "topology", [EquiDyn(), EquiDyn(directed=False), EquiStatic(shifts=3), Matching(), Matcha(of=Line())]
)
def test_weights_of_changing_graphs_keep_the_mean(topology: Any) -> None:
    for epoch in range(5):
        w = pulled(topology, 7, 1, epoch)
        assert w.sum(0) == pytest.approx(1) and w.sum(1) == pytest.approx(1)


def test_a_static_equi_graph_is_a_mean_of_single_shifts() -> None:
    """Row 0 has (n - 1) / n in thirds, by how often a shift was drawn."""
    w = pulled(EquiStatic(shifts=3), 10, 5)
    assert sorted(set(np.round(w[0, 1:] * 3 * 10 / 9, 9))) in ([0.0, 1.0], [0.0, 1.0, 2.0], [0.0, 3.0])
    assert w[0, 0] == pytest.approx(0.1) and np.allclose(w[1], np.roll(w[0], 1))


@pytest.mark.parametrize("count", [6, 7])
def test_matchings_are_pairs_drawn_anew(count: int) -> None:
    drawn = [pulled(Matching(), count, 0, epoch) for epoch in range(3)]
    for w in drawn:
        assert ((w == 0.5).sum(1) == 2).sum() == 6 and w.trace() == 3 + count % 2
    assert not np.array_equal(drawn[0], drawn[1])


def test_matcha_cuts_a_graph_into_few_matchings() -> None:
    for seed in range(40):
        graph = nx.gnp_random_graph(14, 0.1 + 0.02 * seed, seed=seed)
        found = matchings(graph)
        assert sorted(edge for matching in found for edge in matching) == sorted(graph.edges)
        assert all(len({peer for edge in matching for peer in edge}) == 2 * len(matching) for matching in found)
        assert len(found) <= max(dict(graph.degree).values()) + 1


def test_matcha_takes_the_best_weight_and_uses_its_budget() -> None:
    """Against all 2 to the power of matchings, and a grid of weights."""
    plan = _plan(ErdosRenyi(probability=0.5), 0.5, 6, 0)
    assert plan.probabilities.mean() == pytest.approx(0.5) and plan.probabilities.min() >= 0
    best = min((rho(plan, alpha), alpha) for alpha in np.linspace(0, 1, 201))
    assert plan.rho == pytest.approx(rho(plan, plan.alpha)) and plan.rho <= best[0] + 1e-9
    assert plan.alpha == pytest.approx(best[1], abs=0.006)
    always = _plan(Line(), 1.0, 5, 0)
    assert always.probabilities.tolist() == [1.0] * len(always.matchings)


def rho(plan: Any, alpha: float) -> float:
    """The largest eigenvalue of the expected W'W without the mean, by all outcomes."""
    expected = np.zeros((6, 6))
    for active in product((0, 1), repeat=len(plan.matchings)):
        w, chance = np.eye(6), 1.0
        for matching, is_active, share in zip(plan.matchings, active, plan.probabilities, strict=True):
            chance *= share if is_active else 1 - share
            for i, j in matching if is_active else ():
                w[[i, j], [i, j]] -= alpha
                w[[i, j], [j, i]] += alpha
        expected += chance * w.T @ w
    return float(np.linalg.eigvalsh(expected - 1 / 6)[-1])


# --- what does not change ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [{**SECOND, "loss": 0.2}, GOSSIP], ids=["rounds", "gossip"])
def test_a_graph_that_stays_is_the_same_however_it_is_written(simulate: Simulate, tmp_path: Path, world: Raw) -> None:
    """Complete, or drawn anew with all edges, or with links that are always up, or near each other."""
    trace, places = tmp_path / "links.csv", tmp_path / "places.csv"
    trace.write_text("source,target,from,to\n" + "".join(f"{i},{j},0,1e9\n" for i in range(5) for j in range(i)))
    places.write_text("peer,time,x,y\n" + "".join(f"{i},0,{i},-1\n" for i in range(5)))
    drawn = {"name": "regular", "degree": 4, "period_s": 2.0}
    ways = [
        ("complete", {}),
        (drawn, {}),
        ("complete", {"links": str(trace)}),
        ("complete", {"links": {"name": "positions", "path": str(places), "range_m": 4.0}}),
    ]
    found = [
        simulate(peers(data__clients=5, run__rounds=3, topology=topology, world={**world, **more}))
        for topology, more in ways
    ]
    for other in found[1:]:
        assert other.digest == found[0].digest


# --- by virtual time --------------------------------------------------------------------------------------------------


def test_links_come_and_go_as_their_trace_says(simulate: Simulate, tmp_path: Path) -> None:
    """Pairs (0, 3) and (1, 2) in the first second, then (0, 1) and (2, 3): the mean for all."""
    trace = tmp_path / "links.csv"
    trace.write_text("source,target,from,to\n0,3,0,1\n2,1,0,1\n0,1,1,2\n3,2,1,2\n0,2,5,9\n")
    raw = centers(X, 1, topology="complete", world={**SECOND, "links": str(trace)})
    assert last(simulate, raw) == [3.5, 2.5, 2.5, 3.5]
    raw["run"]["rounds"] = 4  # nothing is sent in the last two
    assert last(simulate, raw) == [3.0] * 4
    with pytest.raises(ScenarioError, match=r"world\.links: goes with a delay in seconds"):
        raysim.parse_scenario({**raw, "world": {"links": str(trace)}})


def test_peers_hear_each_other_within_a_range(simulate: Simulate, tmp_path: Path) -> None:
    """Peer 2 walks from peer 1 to peer 0 in 10 s, and is looked at every 4 s: at 10, 6 and 2 m from peer 0."""
    places = tmp_path / "places.csv"
    places.write_text("peer,time,x,y\n0,0,0,0\n1,0,10,0\n2,10,0,0\n2,0,10,0\n")
    links = {"name": "positions", "path": str(places), "range_m": 3, "every_s": 4}
    raw = centers([[0.0]] * 3, 12, topology="complete", world={**SECOND, "links": links})
    sent = simulate(raw).pandas("exchanges")
    near = {(row.round, row.source, row.target) for row in sent.itertuples()}
    first, second = {(1, 2), (2, 1)}, {(0, 2), (2, 0)}
    assert near == {(r, *pair) for r in range(4) for pair in first} | {
        (r, *pair) for r in range(8, 12) for pair in second
    }


def test_a_sender_may_keep_what_is_lost(simulate: Simulate) -> None:
    """With half of the messages lost, the mass of all peers stays, or goes."""
    raw = centers(
        X, 20, topology="directed_ring", algorithm="toys_peers:PushSum", world={"loss": 0.5, "on_loss": "kept"}
    )
    assert sum(last(simulate, raw)) == pytest.approx(12, rel=1e-6)
    raw["world"] = {"loss": 0.5}
    assert sum(last(simulate, raw)) < 6


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"topology": {"name": "matching", "period_s": 1.0}}, "topology.period_s: goes with a delay in seconds"),
        ({"world": {**SECOND, "links": "no.csv"}}, "world.links: no.csv: cannot be read"),
        ({"topology": "matching", "world": GOSSIP}, "who have none; set `topology.period_s`, in seconds, or leave"),
        ({"topology": {"name": "matcha", "of": {"name": "edges", "edges": [[0, 1]]}}}, "no way leads from peer 0 to"),
    ],
)
def test_what_cannot_change_so_is_refused(more: Raw, text: str) -> None:
    with pytest.raises(ScenarioError, match=text.replace("(", r"\(")):
        raysim.parse_scenario(peers(**more))


def test_a_thousand_peers_change_their_graph_each_round(simulate: Simulate) -> None:
    raw = centers([[float(peer)] for peer in range(1000)], 5, topology="matching")
    assert simulate(raw, "--dry").pandas("exchanges").groupby("round").size().tolist() == [1000] * 5
    assert Regular(degree=3, redraw_every=1).neighbours(1000, 0, 4)[0] != Regular(degree=3).neighbours(1000, 0)[0]
