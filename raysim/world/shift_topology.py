"""Graphs in which peers send to those that are some places further in a circle, or hear these.

EquiTopo: Song, Li, Jin, Shi, Yan, Yin, Yuan, Communication-efficient topologies for decentralized learning with O(1)
consensus rate, NeurIPS 2022. Its edges have their own weights, which the default `weights: own` takes.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raysim.parts.lazy import networkx as nx
from raysim.parts.part import Count, OneOf, Rounds
from raysim.world.mixing import WEIGHTINGS, EqualWeights, OwnWeights, Weighting
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
        return shifts(peers, {1: None})


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

    def epoch(self, round: int, time: float = 0.0) -> int:
        return super().epoch(round, time) if self.one_peer else 0

    def most_edges(self, peers: int) -> int:
        return peers * hops(peers)

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return shifts(peers, {2**hop: None for hop in range(hops(peers))})

    def graph_of(self, peers: int, seed: int, epoch: int) -> nx.Graph:
        return (
            shifts(peers, {2 ** (epoch % hops(peers)): None}) if self.one_peer else super().graph_of(peers, seed, epoch)
        )


class Equi(Redrawn):
    """The base of EquiTopo's graphs, in which peer i hears peer i + s, for drawn shifts s."""

    connected: ClassVar[bool] = False

    weights: Annotated[Weighting, OneOf(WEIGHTINGS)] = OwnWeights()
    """Weights of neighbours' messages. own: those of the paper."""


class EquiDyn(Equi):
    """One neighbour a round: peer i + s for one shift s, drawn anew for all peers together (Song et al. 2022).

    Directed (OD-EquiDyn), peer i mixes in (n - 1) / n of the message of peer i + s. Undirected (OU-EquiDyn), i
    and i + s are paired from a random one on while both are free, and a peer that is left alone keeps its model.
    """

    name: str = "equi_dyn"
    directed: bool = True
    """Whether peers send and hear along the shift, or exchange models in pairs."""
    eta: Annotated[float, Field(gt=0, le=1)] = 1.0
    """How far peers go towards the mixed model, W = (1 - eta) I + eta A. The authors' code takes 1."""
    redraw_every: Rounds | None = 1
    """Number of rounds after which another shift is drawn. null: never."""

    def most_edges(self, peers: int) -> int:
        return peers

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        shift, weight = int(generator.integers(1, peers)), self.eta * (peers - 1) / peers
        if self.directed:
            return shifts(peers, {-shift: weight})
        graph, start = nx.empty_graph(peers), int(generator.integers(peers))
        for i in ((start + place) % peers for place in range(peers)):
            if not graph.degree[i] and not graph.degree[other := (i + shift) % peers]:
                graph.add_edge(i, other, weight=weight)
        return graph


class EquiStatic(Equi):
    """Each peer hears those at several shifts, drawn once for all peers (Song et al. 2022, D-EquiStatic).

    W is the mean of as many matrices of `equi_dyn`, in which a shift may come up more than once.
    """

    directed: ClassVar[bool] = True

    name: str = "equi_static"
    shifts: Annotated[Count, Field(examples=[4])] = 4
    """Number of shifts that are drawn (M)."""

    def most_edges(self, peers: int) -> int:
        return peers * min(self.shifts, peers - 1)

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        drawn, times = np.unique(generator.integers(1, peers, size=self.shifts), return_counts=True)
        share = (peers - 1) / peers
        pairs = zip(drawn.tolist(), times.tolist(), strict=True)
        return shifts(peers, {-shift: count / self.shifts * share for shift, count in pairs})


def hops(peers: int) -> int:
    """Returns ceil(log2(peers)): how many powers of two are less than the number of peers."""
    return (peers - 1).bit_length()


def shifts(peers: int, places: dict[int, float | None]) -> nx.DiGraph:
    """Returns the graph in which each peer sends to those that are so many places further in a circle, with the weight
    of each place; None: without one."""
    graph = nx.empty_graph(peers, nx.DiGraph)
    for place, weight in places.items():
        graph.add_edges_from(((peer, (peer + place) % peers) for peer in range(peers)), weight=weight)
    return graph
