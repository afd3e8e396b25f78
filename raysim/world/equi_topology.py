"""EquiTopo: graphs whose rate of consensus does not depend on the number of peers.

Song, Li, Jin, Shi, Yan, Yin, Yuan, Communication-efficient topologies for decentralized learning with O(1) consensus
rate, NeurIPS 2022. Edges have their own weights, which the default `weights: own` takes.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raysim.parts.lazy import networkx as nx
from raysim.parts.part import Count, OneOf, Rounds
from raysim.world.mixing import WEIGHTINGS, OwnWeights, Weighting
from raysim.world.random_topology import Redrawn


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
            graph = nx.empty_graph(peers, nx.DiGraph)
            graph.add_edges_from((((i + shift) % peers, i) for i in range(peers)), weight=weight)
            return graph
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
        graph = nx.empty_graph(peers, nx.DiGraph)
        drawn, times = np.unique(generator.integers(1, peers, size=self.shifts), return_counts=True)
        for shift, count in zip(drawn.tolist(), times.tolist(), strict=True):
            weight = count / self.shifts * (peers - 1) / peers
            graph.add_edges_from((((i + shift) % peers, i) for i in range(peers)), weight=weight)
        return graph
