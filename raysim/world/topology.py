"""Topologies, which say which peers are neighbours: their base, and those that stay as they are."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from actors.fault import frames_of
from raysim.parts.errors import BadInput
from raysim.parts.lazy import networkx as nx
from raysim.parts.part import Count, OneOf, Part
from raysim.parts.rng import generator
from raysim.world.mixing import WEIGHTINGS, EqualWeights, Graph, Metropolis, Neighbours, Weighting
from results.location import location, require_file, why

EDGES = 200_000  # most edges of a graph: with more, checking a scenario takes seconds and hundreds of MB
CHECKED = 100_000  # most peers, summed over the graphs that a check draws


class Topology(Part):
    """A graph of peers, with weights for its edges. A subclass adds its `name`.

    Its graphs are undirected unless it has `directed`, a class variable or a key, that is true.
    """

    name: str
    weights: Annotated[Weighting, OneOf(WEIGHTINGS)] = Metropolis()
    """Weights of neighbours' messages, for algorithms that mix by weights: of what a peer hears or, for algorithms that
    push, of what it sends."""
    step: Annotated[float, Field(gt=0, le=1)] = 1.0
    """How far such algorithms go towards the weighted mean (gamma). Where transforms of `uplink` change messages much,
    smaller steps are stable."""

    @abstractmethod
    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        """Returns a graph of the peers 0, 1, ... Raises ValueError if there is none for so many peers.

        If the edges have an attribute `weight`, `weights: own` takes it.
        """

    @property
    def is_directed(self) -> bool:
        """Whether its graphs are directed ones, along whose edges messages go one way."""
        return bool(getattr(self, "directed", False))

    def most_edges(self, peers: int) -> int:
        """Returns an upper bound of the edges, or pairs of peers, that are looked at to make a graph."""
        return 2 * peers

    def epoch(self, round: int, time: float = 0.0) -> int:
        """Returns the epoch of a round that begins at a virtual time. All rounds of an epoch have the same graph."""
        return 0

    @property
    def may_fail_later(self) -> bool:
        """Whether a later epoch may have no graph even if the first one has."""
        return False

    def graph_of(self, peers: int, seed: int, epoch: int) -> nx.Graph:
        """Returns the graph of an epoch."""
        return self.graph(peers, generator(seed, "topology", epoch))

    def neighbours(self, peers: int, seed: int, epoch: int = 0) -> tuple[Neighbours, ...]:
        """Returns the neighbours of each peer. Raises ValueError as `graph` does, and BadInput for wrong weights."""
        return self.weighed(edges_of(self, peers, seed, epoch))

    def weighed(self, graph: Graph) -> tuple[Neighbours, ...]:
        """Returns the neighbours of each peer with their weights. Raises BadInput if the weights are wrong."""
        rows = self.weights.rows(graph)
        if wrong := self.weights.wrong_with(rows):
            raise BadInput("topology.weights", f"{self.weights.name}.weight: {wrong}")
        return rows

    def problems(self, peers: int, seed: int, rounds: int) -> list[str]:
        """Says what is wrong with the first epoch whose graph cannot be made; [] if all graphs can.

        Where there are very many epochs, it tries the first ones only.
        """
        if peers < 2:
            return [f"must have at least two peers, got {peers}; raise data.clients"]
        if (edges := self.most_edges(peers)) > EDGES:
            return [
                f"{self.name}: must have at most {EDGES:,} edges, or pairs of peers to draw them from, "
                f"got up to {edges:,} for {peers:,} peers; lower data.clients"
            ]
        last = self.epoch(rounds - 1) if self.may_fail_later else 0
        for epoch in range(min(last + 1, max(1, CHECKED // peers))):
            try:
                edges_of(self, peers, seed, epoch)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a user's own `graph` can raise anything
                round = next(round for round in range(rounds) if self.epoch(round) == epoch)
                when = f"from round {round} on, " if round else ""
                if isinstance(error, ValueError):
                    return [f"{self.name}: {when}{error}"]
                where = f", raised at {frames[-1].place}" if (frames := frames_of(error)) else ""
                got = f"{type(error).__name__}: {error}{where}"
                return [f"{self.name}: {when}`graph` must return a graph, got {got}"]
        return []


@lru_cache(maxsize=256)  # no epoch is needed twice once it is over, and a large graph takes megabytes
def edges_of(topology: Topology, peers: int, seed: int, epoch: int) -> Graph:
    """Returns the edges of an epoch's graph, cached for checking a scenario and for running it. Raises ValueError if
    there is none, or if it is wrong."""
    graph = topology.graph_of(peers, seed, epoch)
    require_graph(topology, graph, peers)
    return Graph.of(graph)


def require_graph(topology: Topology, graph: Any, peers: int) -> None:
    """Raises ValueError unless what a topology made is a graph of all peers, without edges from a peer to itself,
    directed only if the topology says so, and connected unless it has a key `connected` that says no. In a connected
    directed graph, there is a way from any peer to any other."""
    if not isinstance(graph, nx.Graph) or graph.is_directed() != topology.is_directed or graph.is_multigraph():
        must = "a directed networkx graph" if topology.is_directed else "an undirected networkx graph"
        call = "to_directed()" if topology.is_directed else "to_undirected()"
        cure = f"call {call} on it, or change `directed` of the class"
        raise ValueError(f"`graph` must return {must}, got {type(graph).__name__}; {cure}")
    if set(graph) != set(range(peers)):
        some = ", ".join(repr(node) for node in list(graph)[:5])
        raise ValueError(f"`graph` must have the peers 0 to {peers - 1} as nodes, got {len(graph)}, such as {some}")
    if loops := [peer for peer in graph if graph.has_edge(peer, peer)]:
        raise ValueError(f"`graph` must connect a peer with another, got {loops[:5]} with themselves; leave these out")
    if not getattr(topology, "connected", True):
        return
    reached = set(nx.descendants(graph, 0)) | {0}
    reaching = set(nx.ancestors(graph, 0)) | {0} if graph.is_directed() else reached
    for found, way in ((reached, "from peer 0 to"), (reaching, "to peer 0 from")):
        if alone := sorted(set(graph) - found):
            cure = "add edges, or set `connected: false` (a custom class needs a field of that name)"
            raise ValueError(f"`graph` must be connected, but no way leads {way} {alone[:5]}; {cure}")


class Ring(Topology):
    """Peers in a circle: each has two neighbours."""

    name: str = "ring"

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return nx.cycle_graph(peers)


class Line(Topology):
    """Peers in a row: a ring without the edge between the last and the first."""

    name: str = "line"

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return nx.path_graph(peers)


class Star(Topology):
    """Peer 0 is the only neighbour of all other peers."""

    name: str = "star"

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return nx.star_graph(peers - 1)


class Complete(Topology):
    """All peers are neighbours of each other."""

    name: str = "complete"

    def most_edges(self, peers: int) -> int:
        return peers * (peers - 1) // 2

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        return nx.complete_graph(peers)


class Grid(Topology):
    """Peers in rows and columns, numbered row by row; those at the border have fewer neighbours."""

    name: str = "grid"
    rows: Count | None = None
    """Number of rows. null: as many as make the grid most like a square."""

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        rows = self.rows or max(n for n in range(1, math.isqrt(peers) + 1) if peers % n == 0)
        if peers % rows or (rows == 1 and self.rows is None):
            asked = "equal rows" if self.rows is None else f"{rows} equal rows"
            raise ValueError(f"{peers} peers must fill {asked}, and do not; change data.clients or `rows`")
        return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, peers // rows), ordering="sorted")


def _read_edges(value: Any) -> Any:
    """Reads the edges if a file is named, so that the resolved scenario holds the edges themselves."""
    if not isinstance(value, str):
        return value
    path = location(value).expanduser().absolute()
    try:
        lines = [line.partition("#")[0].split() for line in require_file(path).read_text().splitlines()]
        return tuple((int(i), int(j)) for i, j in filter(None, lines))
    except (OSError, ValueError) as error:
        cause = why(error) if isinstance(error, OSError) else error
        raise ValueError(f"must be a list, or a file with two peers' numbers a line, got {path}: {cause}") from None


def _read_edge(value: Any) -> Any:
    if isinstance(value, tuple) and len(value) != 2:
        raise ValueError(f"must be two peers, got {list(value)}")
    return value


def _or_a_file(schema: dict[str, Any]) -> None:
    """Lets a file's name stand for the list in the JSON Schema."""
    of_list = {key: schema.pop(key) for key in ("type", "items") if key in schema}
    schema["anyOf"] = [of_list, {"type": "string"}]


class Edges(Topology):
    """The graph has the given edges; unless it is directed, each may be given in one direction or in both."""

    name: str = "edges"
    edges: Annotated[
        tuple[Annotated[tuple[int, int], BeforeValidator(_read_edge)], ...],
        Field(json_schema_extra=_or_a_file, examples=[[[0, 1], [1, 2]]]),
        BeforeValidator(_read_edges),
    ]
    """Pairs of peers, such as [[0, 1], [1, 2]]; or the name of a file with one pair a line, and comments after #."""
    directed: bool = False
    """Whether messages go one way only: along [0, 1], from peer 0 to peer 1. `weights` are then `equal` by default."""
    connected: bool = True
    """Whether the graph must be connected, with a path between any two peers."""

    @model_validator(mode="before")
    @classmethod
    def _weights_of_directed(cls, given: Any) -> Any:
        is_directed = isinstance(given, dict) and given.get("directed") is True
        return {"weights": EqualWeights(), **given} if is_directed else given

    def most_edges(self, peers: int) -> int:
        return max(peers, len(self.edges))

    def graph(self, peers: int, generator: np.random.Generator) -> nx.Graph:
        if strangers := {peer for edge in self.edges for peer in edge} - set(range(peers)):
            raise ValueError(f"must name peers 0 to {peers - 1}, got {sorted(strangers)}; change them or data.clients")
        graph = nx.empty_graph(peers, nx.DiGraph if self.directed else nx.Graph)
        graph.add_edges_from(self.edges)
        return graph
