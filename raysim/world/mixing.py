"""How much of each neighbour's message a peer mixes in: the matrix W, of which each weight belongs to an edge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from raysim.parts.lazy import networkx as nx
from raysim.parts.part import Fraction, Part, is_number

Item = TypeVar("Item")


class Graph(NamedTuple):
    """A graph of the peers 0, 1, ... Messages travel one way along each of its edges."""

    peers: int
    source: NDArray[np.int32]  # of each edge; edges are in order of their targets, then of their sources
    target: NDArray[np.int32]
    weights: NDArray[np.float64] | None  # the weight of each edge, where the topology gives it
    undirected: bool  # whether each edge has another one back

    @classmethod
    def of(cls, graph: nx.Graph) -> Self:
        """Returns the edges of a networkx graph, and their attributes `weight` if they have any."""
        given = list(graph.edges(data="weight"))
        pairs = np.array([edge[:2] for edge in given], dtype=np.int32).reshape(-1, 2)
        weights = np.array([edge[2] for edge in given], dtype=float)
        undirected = not graph.is_directed()
        if undirected:
            pairs, weights = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([weights, weights])
        order = np.lexsort(pairs.T)
        source, target = pairs[order].T
        own = weights[order] if len(weights) and not np.isnan(weights).any() else None
        return cls(len(graph), source, target, own, undirected)

    def only(self, kept: NDArray[np.bool_]) -> Self:
        """Returns the graph without some edges. kept: whether each edge stays, bool (edges,)."""
        weights = None if self.weights is None else self.weights[kept]
        return self._replace(source=self.source[kept], target=self.target[kept], weights=weights)


class Neighbours(NamedTuple):
    """From whom one peer hears, and to whom it sends, with weights. In undirected graphs, both are the same peers."""

    senders: tuple[int, ...]  # ascending
    weights: tuple[float, ...]  # W_ij of each sender's message; the peer's own W_ii is what remains to 1
    receivers: tuple[int, ...]  # ascending
    shares: tuple[float, ...]  # A_ki of what it sends to each receiver; it keeps what remains to 1


class Weighting(Part):
    """A rule for the weights of edges. A subclass adds its `name`.

    Algorithms that pull use it for rows: W_ij of what peer i hears from peer j, by how many i hears and j sends to.
    Algorithms that push, such as push-sum, use it for columns: the share A_ij of what peer j sends to peer i, by how
    many j sends to and i hears. The rest to 1 is the peer's own. In undirected graphs, one is the other's transpose.
    """

    name: str

    @abstractmethod
    def weight(self, own: int, other: int, largest: int) -> float:
        """Returns the weight of an edge, given the numbers of neighbours of the peer that weighs, of the peer at the
        other end, and of the peer with the most neighbours."""

    def wrong_with(self, rows: tuple[Neighbours, ...]) -> str | None:
        """Returns what is wrong with the weights of each peer; None if nothing is."""
        for peer, row in enumerate(rows):
            for weights in (row.weights, row.shares):
                if strange := [weight for weight in weights if not is_number(weight)]:
                    return f"must return numbers, got {type(strange[0]).__name__} for peer {peer}"
                if not (min(weights, default=0.0) >= 0 and sum(weights) <= 1 + 1e-9):
                    some = ", ".join(f"{weight:g}" for weight in weights[:5])
                    must = "weights of a peer's neighbours must be at least 0 and sum to at most 1"
                    return f"{must}, got {some} for the {len(weights)} neighbours of peer {peer}"
        return None

    def of_edges(self, graph: Graph) -> tuple[list[float], list[float]]:
        """Returns W_ij, and then the share A_ij, of each edge from j to i."""
        hears, sends = (np.bincount(ends, minlength=graph.peers) for ends in (graph.target, graph.source))
        largest = int(max(hears.max(), sends.max()))
        weight = cache(lambda own, other: self.weight(own, other, largest))
        ends = hears[graph.target].tolist(), sends[graph.source].tolist()
        pulled = list(map(weight, *ends))
        return pulled, pulled if graph.undirected else list(map(weight, *ends[::-1]))

    def rows(self, graph: Graph) -> tuple[Neighbours, ...]:
        """Returns the neighbours of each peer 0, 1, ..., and their weights."""
        pulled, pushed = self.of_edges(graph)
        heard = zip(_cut(graph.source.tolist(), graph, graph.target), _cut(pulled, graph, graph.target), strict=True)
        if graph.undirected:
            return tuple(Neighbours(*of_peer, *of_peer) for of_peer in heard)
        order = np.lexsort((graph.target, graph.source))
        targets, shares = graph.target[order].tolist(), [pushed[edge] for edge in order.tolist()]
        sent = zip(_cut(targets, graph, graph.source), _cut(shares, graph, graph.source), strict=True)
        return tuple(Neighbours(*one, *other) for one, other in zip(heard, sent, strict=True))


def _cut(items: Sequence[Item], graph: Graph, ends: NDArray[np.int32]) -> Iterator[tuple[Item, ...]]:
    """Cuts what there is of each edge by peers. ends: the peer that each edge belongs to."""
    bounds = accumulate(np.bincount(ends, minlength=graph.peers).tolist(), initial=0)
    return (tuple(items[first:end]) for first, end in pairwise(bounds))


def limit(rows: Sequence[Neighbours]) -> NDArray[np.float64]:
    """Returns how much each peer counts in what all agree on if they only mix by W, (peers,), 1 on average.

    It is all ones if W is doubly stochastic, and else the left eigenvector of W, found in at most 10,000 steps.
    """
    peers = len(rows)
    own = np.array([1 - sum(row.weights) for row in rows])
    source = np.array([j for row in rows for j in row.senders], dtype=np.int64)
    target = np.repeat(np.arange(peers), [len(row.senders) for row in rows])
    weights = np.array([weight for row in rows for weight in row.weights])
    counts = np.ones(peers)
    for _ in range(10_000):
        after = own * counts + np.bincount(source, weights * counts[target], minlength=peers)
        if np.abs(after - counts).max() < 1e-9:
            break
        counts = after
    return counts


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


class EqualWeights(Weighting):
    """1 / (1 + n_i): a peer weighs itself and each neighbour equally. It is the default of directed graphs.

    Those who push then send the same share to all receivers, 1 / (1 + out_j), and those who pull take the plain mean
    of what they hear and have, 1 / (1 + in_i).
    """

    name: str = "equal"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 1 / (1 + own)


class Metropolis(Weighting):
    """W_ij = 1 / (1 + max(n_i, n_j)): symmetric, so that the mean over peers is kept on any undirected graph.

    Xiao, Boyd, Lall, A scheme for robust distributed sensor fusion based on average consensus, IPSN 2005.
    """

    name: str = "metropolis"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 1 / (1 + max(own, other))


class OwnWeights(Metropolis):
    """The weights that a topology gives its edges, such as `equi`; where it gives none, those of `metropolis`."""

    name: str = "own"

    def of_edges(self, graph: Graph) -> tuple[list[float], list[float]]:
        if graph.weights is None:
            return super().of_edges(graph)
        given = graph.weights.tolist()
        return given, given

    def wrong_with(self, rows: tuple[Neighbours, ...]) -> str | None:
        return None  # a peer's own weight may be below 0, as MATCHA's is for some active matchings


class UniformWeight(Weighting):
    """W_ij = 1 / (1 + the largest number of neighbours): one symmetric weight for all edges."""

    name: str = "uniform"

    def weight(self, own: int, other: int, largest: int) -> float:
        return 1 / (1 + largest)


WEIGHTINGS: tuple[type[Weighting], ...] = (NeighbourMean, EqualWeights, Metropolis, UniformWeight, OwnWeights)
