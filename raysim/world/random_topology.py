"""Graphs of peers that may change during a run, by rounds or by virtual time, and random ones."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from raysim.parts.lazy import networkx as nx
from raysim.parts.part import Count, Fraction, Positive, Rounds, Unit
from raysim.world.availability import times_over
from raysim.world.topology import Topology

DRAWS = 100  # draws without a connected graph after which an error is raised


class Redrawn(Topology):
    """A topology with a graph for each epoch. A subclass adds its `name`."""

    redraw_every: Rounds | None = None
    """Number of rounds after which the graph changes. null: one graph for the whole run."""
    period_s: Annotated[Positive, Unit("s")] | None = None
    """Seconds of virtual time after which the graph changes; `redraw_every` does not count then. Peers that do not wait
    for each other need it, if the graph is to change. A message is mixed as long as its edge is there."""

    def epoch(self, round: int, time: float = 0.0) -> int:
        if self.period_s is not None:
            return times_over(self.period_s, time)
        return round // self.redraw_every if self.redraw_every else 0


class RandomTopology(Redrawn):
    """A random graph, which is drawn again until it is connected."""

    connected: bool = True
    """Whether to draw again until there is a path between any two peers. false: the first graph drawn is taken."""

    cure: ClassVar[str]  # what to change if no graph is connected, for the error message

    @abstractmethod
    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        """Draws a graph, connected or not. Raises ValueError if there is none for so many peers."""

    @property
    def may_fail_later(self) -> bool:
        return self.connected

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        for _ in range(DRAWS if self.connected else 1):
            graph = self.draw(peers, generator)
            if not self.connected or nx.is_connected(graph):
                return graph
        raise ValueError(
            f"a graph of {peers} peers must be connected, but none of {DRAWS} drawn was; "
            f"{self.cure}, or set `connected: false`"
        )


class RandomEdges(RandomTopology):
    """A given number of random edges: a random tree, which connects all peers, and further random edges.

    Graphs with more spanning trees are more likely than others. With `connected: false`, all are equally likely.
    """

    name: str = "random"
    edges: Count | None = None
    """Number of edges. null: as many as peers, which is as many as a ring has; for two peers, one."""

    cure: ClassVar[str] = "raise `edges`"

    def most_edges(self, peers: int) -> int:
        return peers * (peers - 1) // 2

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        least, most = peers - 1 if self.connected else 1, self.most_edges(peers)
        edges = self.edges or min(peers, most)
        if not least <= edges <= most:
            text = f"`edges` must be from {least} to {most} for {peers} peers, got {edges}"
            raise ValueError(f"{text}; change `edges` or data.clients")
        if self.connected:  # trees and Prüfer sequences match one to one
            graph = nx.from_prufer_sequence(generator.integers(peers, size=peers - 2).tolist())
        else:
            graph = nx.empty_graph(peers)
        pairs = np.column_stack(np.triu_indices(peers, k=1))
        missing = edges - graph.number_of_edges()
        for pair in generator.permutation(len(pairs)):
            if missing == 0:
                break
            i, j = map(int, pairs[pair])
            missing -= not graph.has_edge(i, j)
            graph.add_edge(i, j)
        return graph

    @property
    def may_fail_later(self) -> bool:
        return False


class ErdosRenyi(RandomTopology):
    """Any two peers are neighbours with the same probability."""

    name: str = "erdos_renyi"
    probability: Annotated[float, Field(gt=0, le=1), Unit("fraction")]
    """Probability that two peers are neighbours."""

    cure: ClassVar[str] = "raise `probability`"

    def most_edges(self, peers: int) -> int:
        return peers * (peers - 1) // 2

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        alone = peers * (1 - self.probability) ** (peers - 1)  # peers without a neighbour, on average
        if self.connected and alone > 30:  # so that one draw in 10¹³ has none of them
            raise ValueError(
                f"a graph of {peers} peers must be connected, but at `probability` {self.probability:g} about "
                f"{alone:.0f} of them have no neighbour; {self.cure}, or set `connected: false`"
            )
        return nx.gnp_random_graph(peers, self.probability, seed=generator)


class Regular(RandomTopology):
    """All peers have the same number of neighbours, chosen at random."""

    name: str = "regular"
    degree: Annotated[Count, Field(examples=[4])]
    """Number of neighbours of each peer."""

    cure: ClassVar[str] = "raise `degree`"

    def most_edges(self, peers: int) -> int:
        return peers * self.degree // 2

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        if self.degree >= peers or self.degree * peers % 2:
            raise ValueError(
                f"`degree` must be less than the number of peers, {peers}, and even where that is odd, "
                f"got {self.degree}; change `degree` or data.clients"
            )
        return nx.random_regular_graph(self.degree, peers, seed=generator)

    @property
    def may_fail_later(self) -> bool:
        return self.connected and self.degree < 3  # else at most one graph in 500 is not connected, with 8 peers


class SmallWorld(RandomTopology):
    """A ring in which peers know their nearest ones, with some edges moved at random (Watts and Strogatz 1998)."""

    name: str = "small_world"
    degree: Count = 4
    """Number of neighbours of each peer before edges are moved: the nearest ones on both sides of the ring."""
    rewire: Fraction = 0.1
    """Probability that an edge is moved to lead to a random peer."""

    cure: ClassVar[str] = "raise `degree`"

    def most_edges(self, peers: int) -> int:
        return peers * self.degree // 2

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        if self.degree >= peers or self.degree % 2:
            raise ValueError(
                f"`degree` must be even and less than the number of peers, {peers}, got {self.degree}; "
                "change `degree` or data.clients"
            )
        return nx.watts_strogatz_graph(peers, self.degree, self.rewire, seed=generator)
