"""How much of each neighbour's message a peer mixes in: a row of the matrix W."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from raysim.parts.part import Fraction, Part, is_number

if TYPE_CHECKING:
    import networkx as nx


class Neighbours(NamedTuple):
    """The neighbours of one peer, and the weights of their messages."""

    peers: tuple[int, ...]  # ascending
    weights: tuple[float, ...]  # W_ij of each neighbour; the peer's own W_ii is what remains to 1


class Weighting(Part):
    """A rule for the weights W_ij of neighbours. With the peer's own weight W_ii, rows sum to 1.

    A subclass adds its `name`.
    """

    name: str

    @abstractmethod
    def weight(self, own: int, other: int, largest: int) -> float:
        """Returns W_ij, given the numbers of neighbours of i, of j, and of the peer with the most neighbours."""

    def wrong_with(self, rows: tuple[Neighbours, ...]) -> str | None:
        """Returns what is wrong with the weights of each peer; None if nothing is."""
        for peer, row in enumerate(rows):
            if strange := [weight for weight in row.weights if not is_number(weight)]:
                return f"must return numbers, got {type(strange[0]).__name__} for peer {peer}"
            if not (min(row.weights, default=0.0) >= 0 and sum(row.weights) <= 1 + 1e-9):
                some = ", ".join(f"{weight:g}" for weight in row.weights[:5])
                must = "weights of a peer's neighbours must be at least 0 and sum to at most 1"
                return f"{must}, got {some} for the {len(row.weights)} neighbours of peer {peer}"
        return None

    def rows(self, graph: nx.Graph) -> tuple[Neighbours, ...]:
        """Returns the neighbours and weights of each peer 0, 1, ... of an undirected graph."""
        degree = dict(graph.degree)
        largest = max(degree.values())
        found = []
        for peer in sorted(graph):
            near = tuple(sorted(graph[peer]))
            found.append(Neighbours(near, tuple(self.weight(degree[peer], degree[j], largest) for j in near)))
        return tuple(found)


class NeighbourMean(Weighting):
    """W = (1 - beta) I + beta D^-1 A: the plain mean over neighbours weighs beta, and the peer itself 1 - beta.

    If all peers have equally many neighbours, columns sum to 1 too. If not, peers agree on a mean that is weighted by
    their numbers of neighbours instead of on the plain one.
    """

    name: str = "neighbours"
    beta: Fraction = 0.5
    """Weight of the mean over neighbours."""

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
