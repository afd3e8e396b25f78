"""Random graphs of peers, drawn once, or anew every few rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from raysim.part import Count, Fraction
from raysim.world.topology import Topology

if TYPE_CHECKING:
    import networkx as nx

DRAWS = 100  # until it is an error that none is connected


class RandomTopology(Topology):
    """A random graph; graphs that are not connected are drawn again."""

    connected: bool = True
    """false: take the first one drawn, even if there is no way from some peer to some other."""
    redraw_every: Count | None = None
    """A new graph after so many rounds."""

    cure: ClassVar[str]  # of graphs that are never connected

    @abstractmethod
    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        """Any one, connected or not. ValueError if there is none of so many peers."""

    def epoch(self, round: int) -> int:
        return round // self.redraw_every if self.redraw_every else 0

    @property
    def may_fail_later(self) -> bool:
        return self.connected and not self.soon_connected

    @property
    def soon_connected(self) -> bool:
        """Whether one of so many draws is, for sure or but for a chance that never comes."""
        return False

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        import networkx as nx

        for _ in range(DRAWS if self.connected else 1):
            graph = self.draw(peers, generator)
            if not self.connected or nx.is_connected(graph):
                return graph
        raise ValueError(
            f"a graph of {peers} peers must be connected, but none of {DRAWS} drawn was; "
            f"{self.cure}, or set `connected: false`"
        )


class RandomEdges(RandomTopology):
    """A given number of random edges: a random tree, which connects all peers, and further ones.

    Graphs with more spanning trees are likelier than others. With `connected: false` all are as likely.
    """

    name: str = "random"
    edges: Count | None = None
    """By default as many as peers, which is as many as a ring has; of two peers, the one that there is."""

    cure: ClassVar[str] = "raise `edges`"

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        import networkx as nx

        least, most = peers - 1 if self.connected else 1, peers * (peers - 1) // 2
        edges = self.edges or min(peers, most)
        if not least <= edges <= most:
            text = f"`edges` must be from {least} to {most} for {peers} peers, got {edges}"
            raise ValueError(f"{text}; change `edges` or data.clients")
        if self.connected:  # a Prüfer sequence for every tree, and a tree for every sequence
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
    def soon_connected(self) -> bool:
        return True


class ErdosRenyi(RandomTopology):
    """Any two peers are neighbours with the same probability."""

    name: str = "erdos_renyi"
    probability: Annotated[float, Field(gt=0, le=1)]

    cure: ClassVar[str] = "raise `probability`"

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        import networkx as nx

        return nx.gnp_random_graph(peers, self.probability, seed=generator)


class Regular(RandomTopology):
    """Random neighbours, of which all peers have the same number."""

    name: str = "regular"
    degree: Count
    """How many neighbours a peer has."""

    cure: ClassVar[str] = "raise `degree`"

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        import networkx as nx

        if self.degree >= peers or self.degree * peers % 2:
            raise ValueError(
                f"`degree` must be less than the number of peers, {peers}, and even where that is odd, "
                f"got {self.degree}; change `degree` or data.clients"
            )
        return nx.random_regular_graph(self.degree, peers, seed=generator)

    @property
    def soon_connected(self) -> bool:
        return self.degree >= 3  # the most that are not, of all such graphs, is one in 500: of degree 3 with 8 peers


class SmallWorld(RandomTopology):
    """A ring of near neighbours, some of whose edges lead far away instead (Watts and Strogatz 1998)."""

    name: str = "small_world"
    degree: Count = 4
    """How many neighbours a peer has at first: the nearest on both sides of a ring."""
    rewire: Fraction = 0.1
    """Probability that an edge is moved to a random peer."""

    cure: ClassVar[str] = "raise `degree`"

    def draw(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        import networkx as nx

        if self.degree >= peers or self.degree % 2:
            raise ValueError(
                f"`degree` must be even and less than the number of peers, {peers}, got {self.degree}; "
                "change `degree` or data.clients"
            )
        return nx.watts_strogatz_graph(peers, self.degree, self.rewire, seed=generator)
