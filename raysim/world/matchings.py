"""Matchings, in which each peer has one neighbour at most: random ones, and those that MATCHA takes of a graph."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.parts.lazy import networkx as nx
from raysim.parts.part import OneOf, Rounds, Unit
from raysim.parts.rng import generator as keyed
from raysim.world.mixing import WEIGHTINGS, OwnWeights, Weighting
from raysim.world.random_topology import ErdosRenyi, RandomEdges, Redrawn, Regular, SmallWorld
from raysim.world.topology import Complete, Edges, Grid, Line, Ring, Star, Topology, require_graph

DECOMPOSED = 256  # most peers of a graph whose activation probabilities are optimised: more take minutes
STEPS = 300  # of that optimisation


class Matching(Redrawn):
    """Random pairs, drawn anew each round; of an odd number of peers, one is left alone."""

    connected: ClassVar[bool] = False

    name: str = "matching"
    redraw_every: Rounds | None = 1
    """Number of rounds after which other pairs are drawn. null: never."""

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        graph, order = nx.empty_graph(peers), generator.permutation(peers).tolist()
        graph.add_edges_from(zip(order[::2], order[1::2], strict=False))
        return graph


_BASES = (Ring, Line, Star, Complete, Grid, Edges, RandomEdges, ErdosRenyi, Regular, SmallWorld)


class Matcha(Redrawn):
    """Matchings of a graph, of which each is active in a round with its own probability (Wang et al. 2019).

    Wang, Sahu, Yang, Joshi, Kar, MATCHA: Speeding up decentralized SGD via matching decomposition sampling, ICC 2019.
    The graph is cut into at most one matching more than its largest degree. Probabilities make the second eigenvalue of
    the expected Laplacian as large as `budget` allows, and W = I - alpha L of the active edges, with the alpha that
    makes the expected W'W nearest to the mean.

    Differences from the paper: the probabilities come from 300 steps of projected ascent instead of a semidefinite
    program, and the cut from greedy colouring and swaps of colours (Misra and Gries).
    """

    connected: ClassVar[bool] = False

    name: str = "matcha"
    of: Annotated[Topology, OneOf(_BASES), Field(examples=[{"name": "ring"}])]
    """The graph whose edges are used. It is drawn once."""
    budget: Annotated[float, Field(gt=0, le=1), Unit("fraction")] = 0.5
    """Expected share of the matchings that are active in a round (CB). 1: all, always."""
    weights: Annotated[Weighting, OneOf(WEIGHTINGS)] = OwnWeights()
    """Weights of neighbours' messages. own: alpha of the paper."""
    redraw_every: Rounds | None = 1
    """Number of rounds after which other matchings are active."""

    def most_edges(self, peers: int) -> int:
        return self.of.most_edges(peers)

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return self.of.graph(peers, generator)

    def graph_of(self, peers: int, seed: int, epoch: int) -> nx.Graph:
        plan = _plan(self.of, self.budget, peers, seed)
        active = keyed(seed, "active matchings", epoch).random(len(plan.matchings)) < plan.probabilities
        graph = nx.empty_graph(peers)
        for matching, is_active in zip(plan.matchings, active.tolist(), strict=True):
            graph.add_edges_from(matching if is_active else (), weight=plan.alpha)
        return graph


class MatchaPlan(NamedTuple):
    """What MATCHA makes of a graph."""

    matchings: list[list[tuple[int, int]]]
    probabilities: NDArray[np.float64]  # of each matching, that it is active
    alpha: float  # weight of an active edge
    rho: float  # second largest eigenvalue of the expected W'W


@lru_cache(maxsize=8)
def _plan(topology: Topology, budget: float, peers: int, seed: int) -> MatchaPlan:
    if peers > DECOMPOSED:
        text = f"the probabilities of matchings are found for at most {DECOMPOSED} peers, got {peers}"
        raise ValueError(f"{text}; lower data.clients, or take `matching`")
    graph = topology.graph_of(peers, seed, 0)
    require_graph(topology, graph, peers)
    if graph.is_directed():
        raise ValueError(f"`of` must be an undirected graph, got {topology.name}; take another")
    found = matchings(graph)
    laplacians = np.zeros((len(found), peers, peers))
    for laplacian, matching in zip(laplacians, found, strict=True):
        for i, j in matching:
            laplacian[[i, j], [i, j]], laplacian[[i, j], [j, i]] = 1, -1
    shares = _probabilities(laplacians, budget)
    return MatchaPlan(found, shares, *_step(laplacians, shares))


def _probabilities(laplacians: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """Returns the probabilities that make the second eigenvalue of the expected Laplacian large: at most 1 each, and
    `budget` on average. laplacians: (matchings, peers, peers)."""
    shares = best = np.full(len(laplacians), budget)
    largest = -1.0
    for step in range(STEPS if budget < 1 else 0):
        values, vectors = np.linalg.eigh(np.tensordot(shares, laplacians, 1))
        if values[1] > largest:
            largest, best = values[1], shares
        slope = np.einsum("i,mij,j->m", vectors[:, 1], laplacians, vectors[:, 1])
        shares = _projected(shares + slope / max(np.linalg.norm(slope), 1e-12) / (step + 10) ** 0.5, budget)
    return best


def _projected(shares: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """Returns the nearest shares from 0 to 1 whose mean is the budget."""
    low, high = shares.min() - 1, shares.max()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(shares - middle, 0, 1).mean() > budget else (low, middle)
    projected: NDArray[np.float64] = np.clip(shares - high, 0, 1)
    return projected


def _step(laplacians: NDArray[np.float64], shares: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the alpha with the least largest eigenvalue of the expected W'W minus the mean, and that eigenvalue.

    Because the square of a matching's Laplacian L_j is 2 L_j, the expected square of the sum of the active ones is
    M M + 2 sum_j p_j (1 - p_j) L_j, where M = sum_j p_j L_j.
    """
    mean = np.tensordot(shares, laplacians, 1)
    square = mean @ mean + 2 * np.tensordot(shares * (1 - shares), laplacians, 1)
    rest = np.eye(len(mean)) - 1 / len(mean)

    def rho(alpha: float) -> float:
        return float(np.linalg.eigvalsh(rest - 2 * alpha * mean + alpha**2 * square)[-1])

    low, high = 0.0, 1.0
    for _ in range(50):  # rho is convex
        one, other = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, other) if rho(one) <= rho(other) else (one, high)
    return (low + high) / 2, rho((low + high) / 2)


# --- edge colouring ---------------------------------------------------------------------------------------------------


def matchings(graph: nx.Graph) -> list[list[tuple[int, int]]]:
    """Returns matchings that have each edge once, at most one more than the largest degree (Misra and Gries 1992)."""
    at: dict[int, dict[int, int]] = {node: {} for node in graph}  # at each node, its neighbour by colour
    colours = range(max((degree for _, degree in graph.degree), default=0) + 1)
    for u, v in sorted(map(sorted, graph.edges)):
        fan = [v]  # the colour of each edge from u to one of these is free at the one before
        while following := [w for c, w in sorted(at[u].items()) if w not in fan and c not in at[fan[-1]]]:
            fan.append(following[0])
        c, d = (next(colour for colour in colours if colour not in at[node]) for node in (u, fan[-1]))
        _swap(at, u, c, d)
        _colour(at, u, fan, d)
    found = [sorted((i, j) for i in graph if (j := at[i].get(colour, -1)) > i) for colour in colours]
    return [matching for matching in found if matching]


def _swap(at: dict[int, dict[int, int]], start: int, c: int, d: int) -> None:
    """Swaps two colours along the path of them from a node at which c is free, so that d is free there."""
    edges, node, colour = [], start, d
    while c != d and (following := at[node].get(colour)) is not None:
        edges.append((node, following, colour))
        node, colour = following, c if colour == d else d
    for one, other, colour in edges:
        del at[one][colour], at[other][colour]
    for one, other, colour in edges:
        swapped = c if colour == d else d
        at[one][swapped], at[other][swapped] = other, one


def _colour(at: dict[int, dict[int, int]], u: int, fan: list[int], d: int) -> None:
    """Gives the edge to the first node of a fan a colour: each edge takes that of the next one, up to one that takes d,
    which is free at u."""
    of = {node: colour for colour, node in at[u].items()}
    end = 0
    while d in at[fan[end]]:
        end += 1
        assert of[fan[end]] not in at[fan[end - 1]]  # Misra and Gries show that the fan holds up to there
    for node in fan[1 : end + 1]:
        del at[u][of[node]], at[node][of[node]]
    for node, colour in zip(fan, [*(of[node] for node in fan[1 : end + 1]), d], strict=False):
        at[u][colour], at[node][colour] = node, u
