"""The laws of topologies and of their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from raysim.contract.law import Broken, Groups
from raysim.contract.subject import Subject
from raysim.contract.world import RUNS
from raysim.rng import globals_kept, seed_globals
from raysim.world.mixing import Neighbours, Weighting
from raysim.world.topology import Topology


def peers(subject: Subject) -> int:
    """Returns how many peers the trial has."""
    return subject.scenario.data.clients


def topology(subject: Subject) -> Topology:
    """Returns the topology of the trial, which is the part itself or has its weights."""
    found = subject.scenario.topology
    assert found is not None
    return found


def rows(subject: Subject, seed: int = 0) -> tuple[Neighbours, ...]:
    """Returns the neighbours of each peer."""
    return topology(subject).neighbours(peers(subject), seed)


def it_has_all_peers(subject: Subject) -> None:
    """Its graph has the peers 0, 1, ... and no edge from a peer to itself."""
    graph: Any = topology(subject).graph(peers(subject), np.random.default_rng(0))
    if sorted(graph) != list(range(peers(subject))):
        raise Broken(f"graph: must have the peers 0 to {peers(subject) - 1}, got {sorted(graph)}")
    if loops := [edge for edge in graph.edges if edge[0] == edge[1]]:
        raise Broken(f"graph: must have no edge from a peer to itself, got {loops[:3]}")
    if graph.is_directed():
        raise Broken("graph: must be undirected, got a directed graph")


def it_is_connected(subject: Subject) -> None:
    """There is a path between any two peers, unless `connected` is a key that says no."""
    import networkx as nx

    graph: Any = topology(subject).graph(peers(subject), np.random.default_rng(0))
    if getattr(topology(subject), "connected", True) and not nx.is_connected(graph):
        parts = [sorted(part)[:4] for part in nx.connected_components(graph)]
        raise Broken(f"graph: must be connected, got {len(parts)} parts: {parts[:3]}")


def the_same_seed_gives_the_same_graph(subject: Subject) -> None:
    """A seed decides the graph, whatever the global generators hold."""
    edges = []
    for seed in (1, 2):
        with globals_kept():
            seed_globals(seed, "graph")  # so that draws from the global generators show
            graph: Any = topology(subject).graph(peers(subject), np.random.default_rng(0))
        edges.append(sorted(map(sorted, graph.edges)))
    if edges[0] != edges[1]:
        raise Broken("graph: must be the same for the same generator, and differs; draw from the generator given")


def rows_sum_to_one(subject: Subject) -> None:
    """Weights of neighbours are at least 0 and sum to at most 1; the rest is the peer's own."""
    for peer, row in enumerate(rows(subject)):
        total = sum(row.weights)
        if min(row.weights, default=0.0) < 0 or total > 1 + 1e-9:
            raise Broken(f"weights of peer {peer}: must be at least 0 and sum to at most 1, got {row.weights}")


def neighbours_know_each_other(subject: Subject) -> None:
    """A peer's neighbours have it as their neighbour."""
    found = rows(subject)
    for peer, row in enumerate(found):
        if strangers := [other for other in row.peers if peer not in found[other].peers]:
            raise Broken(f"peer {peer}: must be a neighbour of its neighbours, is none of {strangers}")


def weights_follow_degrees(subject: Subject) -> None:
    """The weights of any pair of degrees are at least 0, and never let a peer give away more than all."""
    weighting = subject.made
    assert isinstance(weighting, Weighting)
    for own in range(1, 8):
        for other in range(1, 8):
            weight = weighting.weight(own, other, 7)
            if not 0 <= own * weight <= 1 + 1e-9:
                text = f"must be between 0 and 1 / {own}, got {weight!r}"
                raise Broken(f"weight, a peer with {own} neighbours and one with {other}: {text}")


TOPOLOGY: Groups = (
    (RUNS[0]),
    (it_has_all_peers,),
    (it_is_connected, the_same_seed_gives_the_same_graph),
    (rows_sum_to_one, neighbours_know_each_other),
    *RUNS[1:],
)
WEIGHTS: Groups = ((weights_follow_degrees,), (RUNS[0]), (rows_sum_to_one,), *RUNS[1:])
