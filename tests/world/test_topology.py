"""Graphs of peers, and the weights with which neighbours' messages are mixed."""

import re
from pathlib import Path
from typing import Annotated, Any

import networkx as nx
import numpy as np
import pytest
from peers_runs import pulled
from pydantic import TypeAdapter, ValidationError

from raysim.parts import rng
from raysim.parts.part import OneOf
from raysim.world import TOPOLOGIES, Topology
from raysim.world.random_topology import ErdosRenyi
from raysim.world.topology import Complete

RANDOM: list[dict[str, Any]] = [
    {"name": "random", "edges": 14},
    {"name": "erdos_renyi", "probability": 0.4},
    {"name": "regular", "degree": 3},
    {"name": "small_world", "degree": 4, "rewire": 0.3},
]
FIXED: list[dict[str, Any]] = [
    {"name": "ring"},
    {"name": "line"},
    {"name": "star"},
    {"name": "complete"},
    {"name": "grid"},
    {"name": "edges", "edges": tuple((i, i + 1) for i in range(11))},
]


def topology(**raw: Any) -> Topology:
    read: Topology = TypeAdapter(Annotated[Topology, OneOf(TOPOLOGIES)]).validate_python(raw)
    return read


def graph_of(raw: dict[str, Any], peers: int = 12, seed: int = 0, epoch: int = 0) -> nx.Graph:
    """The graph that the neighbours make, who must be each other's."""
    near = topology(**raw).neighbours(peers, seed, epoch)
    assert [list(one.senders) for one in near] == [sorted(set(one.senders) - {i}) for i, one in enumerate(near)]
    assert all(peer in near[other].senders for peer, of_one in enumerate(near) for other in of_one.senders)
    return nx.from_dict_of_lists({peer: of_one.senders for peer, of_one in enumerate(near)})


def pairs(graph: nx.Graph) -> set[tuple[int, ...]]:
    return {tuple(sorted(edge)) for edge in graph.edges}


def matrix(raw: dict[str, Any], peers: int = 12) -> np.ndarray:
    return pulled(topology(**raw), peers)


@pytest.mark.parametrize(("raw", "rows"), [({"name": "grid"}, 3), ({"name": "grid", "rows": 2}, 2)])
def test_a_grid_is_numbered_row_by_row(raw: dict[str, Any], rows: int) -> None:
    columns = 12 // rows
    wanted = {(i, i + 1) for i in range(11) if (i + 1) % columns} | {(i, i + columns) for i in range(12 - columns)}
    assert pairs(graph_of(raw)) == wanted


def test_random_graphs_are_of_their_kind() -> None:
    for seed in range(5):
        assert graph_of({"name": "random", "edges": 14}, seed=seed).number_of_edges() == 14
        assert graph_of({"name": "random"}, seed=seed).number_of_edges() == 12
        assert graph_of({"name": "random", "edges": 11}, seed=seed).number_of_edges() == 11
        assert set(dict(graph_of({"name": "regular", "degree": 3}, seed=seed).degree).values()) == {3}
        assert graph_of({"name": "small_world", "degree": 4, "rewire": 0.5}, seed=seed).number_of_edges() == 24
    assert graph_of({"name": "random", "edges": 66}).number_of_edges() == 66
    sizes = [
        graph_of({"name": "erdos_renyi", "probability": 0.4}, peers=40, seed=seed).number_of_edges() for seed in (1, 2)
    ]
    assert sizes == pytest.approx([0.4 * 40 * 39 / 2] * 2, rel=0.15)
    ring = graph_of({"name": "small_world", "degree": 2, "rewire": 0.0})
    assert pairs(ring) == pairs(nx.cycle_graph(12))


def test_a_random_tree_may_be_any() -> None:
    """All 3 trees of three peers come up, about as often."""
    centres = [
        max(graph_of({"name": "random", "edges": 2}, 3, seed).degree, key=lambda d: d[1])[0] for seed in range(300)
    ]
    assert np.bincount(centres) == pytest.approx([100] * 3, abs=35)


def test_a_graph_is_drawn_anew_every_few_rounds() -> None:
    changing = topology(name="regular", degree=3, redraw_every=4)
    assert [changing.epoch(round) for round in (0, 3, 4, 11)] == [0, 0, 1, 2]
    assert topology(name="regular", degree=3).epoch(1000) == topology(name="ring").epoch(1000) == 0


@pytest.mark.parametrize("weights", ["metropolis", "uniform", {"name": "neighbours", "beta": 0.3}], ids=str)
@pytest.mark.parametrize("raw", RANDOM + FIXED, ids=lambda raw: raw["name"])
def test_rows_of_weights_sum_to_one_and_nothing_is_negative(raw: dict[str, Any], weights: Any) -> None:
    w = matrix({**raw, "weights": weights})
    assert w.sum(1) == pytest.approx(1)
    assert w.min() >= 0
    graph = graph_of(raw)
    assert ((w > 0) == (nx.to_numpy_array(graph, nodelist=range(12)) + np.eye(12) * np.diag(w) > 0)).all()
    if isinstance(weights, str):
        assert (w == w.T).all()
        assert w.diagonal().min() > 0


def test_weights_are_those_of_their_formulas() -> None:
    star = {"name": "star"}
    assert matrix({**star, "weights": "metropolis"}, 4)[0].tolist() == [0.25] * 4
    line = matrix({"name": "edges", "edges": ((0, 1), (1, 2), (1, 3), (3, 4)), "weights": "metropolis"}, 5)
    assert line[3].tolist() == pytest.approx([0, 1 / 4, 0, 1 - 1 / 4 - 1 / 3, 1 / 3])
    uniform = matrix({"name": "edges", "edges": ((0, 1), (1, 2), (1, 3), (3, 4)), "weights": "uniform"}, 5)
    assert uniform[3].tolist() == pytest.approx([0, 1 / 4, 0, 1 / 2, 1 / 4])
    beta = 0.3
    graph = graph_of(RANDOM[0])
    adjacency = nx.to_numpy_array(graph, nodelist=range(12))
    mean = adjacency / adjacency.sum(1, keepdims=True)
    wanted = (1 - beta) * np.eye(12) + beta * mean
    assert matrix({**RANDOM[0], "weights": {"name": "neighbours", "beta": beta}}) == pytest.approx(wanted)


def test_edges_come_from_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("# a triangle, and one more\n0 1\n1 2\n\n2 0 # the last side\n2 3\n")
    read = topology(name="edges", edges=str(path))
    assert read.model_dump()["edges"] == ((0, 1), (1, 2), (2, 0), (2, 3))
    assert read.neighbours(4, 0)[2].senders == (0, 1, 3)


@pytest.mark.parametrize(("content", "word"), [(None, "No such file"), ("0 x", "'x'"), ("0 1 2", "too many")])
def test_a_wrong_file_of_edges_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, word: str
) -> None:
    path = tmp_path / "edges.txt"
    if content:
        path.write_text(content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValidationError, match=f"got {re.escape(str(path))}: .*{word}"):
        topology(name="edges", edges="edges.txt")


@pytest.mark.parametrize(
    ("raw", "peers", "text"),
    [
        ({"name": "ring"}, 1, "must have at least two peers, got 1; raise data.clients"),
        ({"name": "grid"}, 7, "grid: 7 peers must fill equal rows, and do not"),
        ({"name": "grid", "rows": 5}, 12, "grid: 12 peers must fill 5 equal rows, and do not"),
        ({"name": "edges", "edges": ((0, 1), (1, 9))}, 4, r"must name peers 0 to 3, got \[9\]"),
        ({"name": "edges", "edges": ((0, 1), (1, 1))}, 2, r"must connect a peer with another, got \[1\] with"),
        ({"name": "edges", "edges": ((0, 1), (2, 3))}, 4, r"no way leads from peer 0 to \[2, 3\]; add edges, or set"),
        ({"name": "random", "edges": 10}, 12, "`edges` must be from 11 to 66 for 12 peers, got 10"),
        ({"name": "random", "edges": 67}, 12, "`edges` must be from 11 to 66 for 12 peers, got 67"),
        ({"name": "erdos_renyi", "probability": 0.01}, 12, "none of 100 drawn was; raise `probability`, or set"),
        ({"name": "regular", "degree": 1}, 12, "none of 100 drawn was; raise `degree`, or set"),
        ({"name": "regular", "degree": 3}, 11, "`degree` must be less than the number of peers, 11, and even where"),
        ({"name": "regular", "degree": 12}, 12, "`degree` must be less than the number of peers, 12, and even where"),
        ({"name": "small_world", "degree": 3}, 12, "`degree` must be even and less than the number of peers, 12, got"),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_what_no_graph_can_be_is_refused(raw: dict[str, Any], peers: int, text: str) -> None:
    (problem,) = topology(**raw).problems(peers, seed=0, rounds=9)
    assert re.search(text, problem)


def test_an_error_of_a_user_s_own_graph_is_told_with_its_line() -> None:
    class Odd(Topology):
        name: str = "odd"

        def graph(self, peers: int, generator: Any) -> Any:
            return {}["edge"]

    (problem,) = Odd().problems(4, seed=0, rounds=2)
    assert re.fullmatch(
        r"odd: `graph` must return a graph, got KeyError: 'edge', raised at .*test_topology.py.*", problem
    )


UNSURE = {"name": "erdos_renyi", "probability": 0.11, "redraw_every": 3}  # of 12 peers, most epochs have a graph


def test_every_graph_of_a_run_is_drawn_before_any_work() -> None:
    """The first that is not connected is named by its first round."""
    unsure = topology(**UNSURE)
    failing = [epoch for epoch in range(60) if not can_be_drawn(unsure, epoch)]
    assert failing[0] > 1 and len(failing) > 1
    first = 3 * failing[0]
    assert unsure.problems(12, 0, rounds=first) == []
    for rounds in (first + 1, 180):
        (problem,) = unsure.problems(12, 0, rounds)
        assert problem == (
            f"erdos_renyi: from round {first} on, a graph of 12 peers must be connected, but none of 100 drawn was; "
            "raise `probability`, or set `connected: false`"
        )
    assert topology(**UNSURE, connected=False).problems(12, 0, 180) == []


def can_be_drawn(graphs: Topology, epoch: int) -> bool:
    try:
        graphs.neighbours(12, 0, epoch)
    except ValueError:
        return False
    return True


def test_the_graphs_that_were_checked_are_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = topology(name="small_world", redraw_every=1)
    assert sure.problems(12, 77, rounds=20) == []
    monkeypatch.setattr(type(sure), "draw", lambda *_: pytest.fail("a graph was drawn again"))
    assert len({sure.neighbours(12, 77, epoch) for epoch in range(20)}) > 10


@pytest.mark.parametrize(
    "raw",
    [
        {"name": "edges", "edges": ((0, 1), (2, 3))},
        {"name": "random", "edges": 3},
        {"name": "erdos_renyi", "probability": 0.01},
        {"name": "regular", "degree": 1},
    ],
    ids=lambda raw: raw["name"],
)
def test_a_graph_may_be_disconnected_where_that_is_asked_for(raw: dict[str, Any]) -> None:
    asked = {**raw, "connected": False}
    assert topology(**asked).problems(12, 0, 9) == []
    assert not nx.is_connected(graph_of(asked))
    w = matrix({**asked, "weights": "neighbours"})
    assert w.sum(1) == pytest.approx(1)


def test_draws_have_keys_of_their_own() -> None:
    """The graph is that of the key (seed, "topology", epoch), whatever else was drawn."""

    wanted = nx.random_regular_graph(3, 12, seed=rng.generator(5, "topology", 2))
    assert pairs(graph_of({"name": "regular", "degree": 3}, 12, 5, 2)) == pairs(wanted)


def test_graphs_that_take_no_end_of_time_or_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """More edges than can be held, draws that are hopeless, and more epochs than can be tried."""
    assert Complete().problems(633, 0, 1) == [
        "complete: must have at most 200,000 edges, or pairs of peers to draw them from, got up to 200,028 for 633 "
        "peers; lower data.clients"
    ]
    sparse = ErdosRenyi(probability=0.001).problems(600, 0, 1)
    assert "at `probability` 0.001 about 330 of them have no neighbour; raise `probability`" in sparse[0]
    monkeypatch.setattr("raysim.world.topology.CHECKED", 1000)
    assert ErdosRenyi(probability=1.0, redraw_every=1).problems(200, 0, 2**31) == []
