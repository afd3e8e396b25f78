"""Directed graphs, along whose edges messages go one way."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from raysim.parts.lazy import networkx as nx
from raysim.parts.part import OneOf, Rounds
from raysim.world.mixing import WEIGHTINGS, EqualWeights, Weighting
from raysim.world.random_topology import Redrawn
from raysim.world.topology import Topology


class Directed(Topology):
    """A directed graph, whose weights are equal by default. A subclass adds its `name`."""

    directed: ClassVar[bool] = True

    weights: Annotated[Weighting, OneOf(WEIGHTINGS)] = EqualWeights()
    """Weights of neighbours' messages: of what a peer hears or, for algorithms that push, of what it sends."""


class DirectedRing(Directed):
    """Peers in a circle: each sends to the next one only."""

    name: str = "directed_ring"

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return shifts(peers, [1])


class ExponentialGraph(Directed, Redrawn):
    """Each peer sends to those that are 1, 2, 4, 8, ... places further in a circle.

    Ying, Yuan, Chen, Hu, Pan, Yin, Exponential graph is provably efficient for decentralized deep training, NeurIPS
    2021. With `one_peer`, the rounds of a power of two of peers average exactly: log2 n in a row.
    """

    name: str = "exponential"
    one_peer: bool = False
    """Whether each peer sends to one peer a round only: 1, then 2, then 4 places further, and so on, and again 1."""
    redraw_every: Rounds | None = 1
    """With `one_peer`, number of rounds after which peers send to the next one."""

    @property
    def connected(self) -> bool:
        return not self.one_peer

    def epoch(self, round: int) -> int:
        return super().epoch(round) if self.one_peer else 0

    def epoch_at(self, round: int, time: float) -> int:
        return super().epoch_at(round, time) if self.one_peer else 0

    def most_edges(self, peers: int) -> int:
        return peers * hops(peers)

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return shifts(peers, [2**hop for hop in range(hops(peers))])

    def graph_of(self, peers: int, seed: int, epoch: int) -> nx.Graph:
        return shifts(peers, [2 ** (epoch % hops(peers))]) if self.one_peer else super().graph_of(peers, seed, epoch)


def hops(peers: int) -> int:
    """Returns ceil(log2(peers)): how many powers of two are less than the number of peers."""
    return (peers - 1).bit_length()


def shifts(peers: int, places: list[int]) -> nx.DiGraph:
    """Returns the graph in which each peer sends to those that are so many places further in a circle."""
    graph = nx.empty_graph(peers, nx.DiGraph)
    graph.add_edges_from((peer, (peer + place) % peers) for place in places for peer in range(peers))
    return graph
