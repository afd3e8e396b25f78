"""The graphs of a run: who hears whom at what time, of the peers that are there and the links that are up."""

import math

import numpy as np
from numpy.typing import NDArray

from raysim.parts.rng import Stream
from raysim.world.availability import Presence
from raysim.world.links import AllLinks, Links
from raysim.world.mixing import Neighbours
from raysim.world.topology import Topology


class Graphs:
    """The neighbours of all peers, at times that never decrease. Weights are those of the graph that is there."""

    def __init__(self, topology: Topology, links: Links, presence: Presence | None, peers: int, seed: int) -> None:
        """presence: who is there; None if all peers always are."""
        self._topology, self._peers, self._seed = topology, peers, seed
        self._links = None if isinstance(links, AllLinks) else links
        self._presence = presence
        self._epoch, self._until = -1, -math.inf  # the graph is known for this epoch, and until just before this time
        self._kept: NDArray[np.bool_] | None = None  # the edges of the epoch's graph that are there; None: all
        self._near: tuple[Neighbours, ...] = ()
        self._heirs = Stream(seed, "heir")

    def at(self, round: int, time: float) -> tuple[Neighbours, ...]:
        """Returns the neighbours of each peer in a round, or epoch, at a time."""
        epoch = self._topology.epoch_at(round, time)
        if epoch != self._epoch or time >= self._until:
            graph = self._topology.edges_of(self._peers, self._seed, epoch)
            kept: NDArray[np.bool_] | None = None
            self._until = math.inf
            if self._links is not None:
                kept, self._until = self._links.up(graph, time), self._links.next_change(time)
            if self._presence is not None:
                there = self._presence.mask(time)
                present = there[graph.source] & there[graph.target]
                kept = present if kept is None else kept & present
                self._until = min(self._until, self._presence.next_change(time))
            if epoch != self._epoch or not _equal(kept, self._kept):
                self._near = self._topology.weighed(graph if kept is None else graph.only(kept))
            self._epoch, self._kept = epoch, kept
        return self._near

    def leaving(self, peer: int, number: int, time: float) -> Neighbours:
        """Returns the one peer to which a peer that has gone hands over, drawn among those that it can send to and that
        are there; none if there are none. number: of its message. To be called after `at`."""
        assert self._presence is not None
        graph = self._topology.edges_of(self._peers, self._seed, self._epoch)
        can = self._presence.mask(time)[graph.target] & (graph.source == peer)
        if self._links is not None:
            can &= self._links.up(graph, time)
        able = graph.target[can].tolist()
        heir = (able[int(self._heirs(peer, number).integers(len(able)))],) if able else ()
        return Neighbours((), (), heir, (1.0,) * len(heir))


def _equal(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
