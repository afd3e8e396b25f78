"""How much of each neighbour's message a peer mixes in: a row of the matrix W."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from raysim.part import Fraction, Part

if TYPE_CHECKING:
    import networkx as nx


class Neighbours(NamedTuple):
    """Of one peer."""

    peers: tuple[int, ...]  # ascending
    weights: tuple[float, ...]  # W_ij of each; what is left to 1 is the peer's own, W_ii


class Weighting(Part):
    """A rule for the weights W_ij of neighbours; rows sum to 1 with the peer's own W_ii. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def weight(self, own: int, other: int, largest: int) -> float:
        """W_ij, from the numbers of neighbours of i, of j, and of the peer with the most of them."""

    def rows(self, graph: nx.Graph) -> tuple[Neighbours, ...]:
        """The neighbours of each peer 0, 1, ... of an undirected graph."""
        degree = dict(graph.degree)
        largest = max(degree.values())
        found = []
        for peer in sorted(graph):
            near = tuple(sorted(graph[peer]))
            found.append(Neighbours(near, tuple(self.weight(degree[peer], degree[j], largest) for j in near)))
        return tuple(found)


class NeighbourMean(Weighting):
    """W = (1 - beta) I + beta D^-1 A: the plain mean over neighbours, with a share of beta.

    Columns sum to 1, too, where all peers have as many neighbours. Elsewhere what peers agree on is not their mean but
    the one weighted by their numbers of neighbours.
    """

    name: str = "neighbours"
    beta: Fraction = 0.5

    def weight(self, own: int, other: int, largest: int) -> float:
        return self.beta / own


class Metropolis(Weighting):
    """W_ij = 1 / (1 + max(n_i, n_j)): symmetric, so that the mean over peers is kept on any graph.

    Xiao, Boyd, Lall, A scheme for robust distributed sensor fusion based on average consensus, IPSN 2005.
    """

    name: str = "metropolis"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 1 / (1 + max(own, other))


class UniformWeight(Weighting):
    """W_ij = 1 / (1 + the largest number of neighbours): one symmetric weight for all edges."""

    name: str = "uniform"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 1 / (1 + largest)


WEIGHTINGS: tuple[type[Weighting], ...] = (NeighbourMean, Metropolis, UniformWeight)
