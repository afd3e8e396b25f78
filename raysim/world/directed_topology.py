"""Directed graphs, along whose edges messages go one way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from raysim.parts.part import OneOf
from raysim.world.mixing import WEIGHTINGS, EqualWeights, Weighting
from raysim.world.topology import Topology

if TYPE_CHECKING:
    import networkx as nx


class Directed(Topology):
    """A directed graph, whose weights are equal by default. A subclass adds its `name`."""

    directed: ClassVar[bool] = True

    weights: Annotated[Weighting, OneOf(WEIGHTINGS, "raysim.mixing_weights")] = EqualWeights()
    """Weights of neighbours' messages: of what a peer hears or, for algorithms that push, of what it sends."""


class DirectedRing(Directed):
    """Peers in a circle: each sends to the next one only."""

    name: str = "directed_ring"

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return shifts(peers, [1])


class ExponentialGraph(Directed):
    """Each peer sends to those that are 1, 2, 4, 8, ... places further in a circle (Ying et al. 2021)."""

    name: str = "exponential"

    def most_edges(self, peers: int) -> int:
        return peers * hops(peers)

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return shifts(peers, [2**hop for hop in range(hops(peers))])


def hops(peers: int) -> int:
    """Returns ceil(log2(peers)): how many powers of two are less than the number of peers."""
    return (peers - 1).bit_length()


def shifts(peers: int, places: list[int]) -> nx.DiGraph:
    """Returns the graph in which each peer sends to those that are so many places further in a circle."""
    import networkx as nx

    graph = nx.empty_graph(peers, nx.DiGraph)
    graph.add_edges_from((peer, (peer + place) % peers) for place in places for peer in range(peers))
    return graph
