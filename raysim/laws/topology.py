"""The laws of topologies and of their weights."""

from typing import Any

import numpy as np

from raysim.laws.law import Broken, Groups
from raysim.laws.runs import RUNS
from raysim.laws.subject import Subject
from raysim.parts.process import isolated
from raysim.parts.rng import seed_globals
from raysim.world.topology import Topology, require_graph


def peers(subject: Subject) -> int:
    """Returns how many peers the trial has."""
    return subject.scenario.data.clients


def topology(subject: Subject) -> Topology:
    """Returns the topology of the trial, which is the part itself or has its weights."""
    found = subject.scenario.topology
    assert found is not None
    return found


def its_graph_is_one_of_peers(subject: Subject) -> None:
    """Its graph is undirected, of all peers, without loops, and connected unless a key `connected` says no."""
    graph = topology(subject).graph(peers(subject), np.random.default_rng(0))
    try:
        require_graph(topology(subject), graph, peers(subject))
    except ValueError as error:
        raise Broken(str(error)) from error


def the_same_seed_gives_the_same_graph(subject: Subject) -> None:
    """A seed decides the graph, whatever the global generators hold."""
    edges = []
    for seed in (1, 2):
        with isolated():
            seed_globals(seed, "graph")  # so that draws from the global generators show
            graph: Any = topology(subject).graph(peers(subject), np.random.default_rng(0))
        edges.append(sorted(map(sorted, graph.edges)))
    if edges[0] != edges[1]:
        raise Broken("graph: must be the same for the same generator, and differs; draw from the generator given")


def weights_follow_degrees(subject: Subject) -> None:
    """The weights of any pair of degrees are at least 0, and never let a peer give away more than all."""
    for own in range(1, 8):
        for other in range(1, 8):
            weight = subject.made.weight(own, other, 7)
            if not 0 <= own * weight <= 1 + 1e-9:
                text = f"must be between 0 and 1 / {own}, got {weight!r}"
                raise Broken(f"weight, a peer with {own} neighbours and one with {other}: {text}")


TOPOLOGY: Groups = (
    RUNS[0],
    (its_graph_is_one_of_peers,),
    (the_same_seed_gives_the_same_graph,),
    *RUNS[1:],
)
WEIGHTS: Groups = ((weights_follow_degrees,), *RUNS)
