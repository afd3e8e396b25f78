"""The timeline of peers: when each of them trains, and whose messages it mixes when, in virtual time.

It is a pure function of the scenario and handles no tensors. Here is what all such timelines share. Order at equal
times: training ends, messages are sent, messages arrive, then peers mix, by their numbers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream
from raysim.world import Cost, Topology, World
from raysim.world.availability import Always, Presence
from raysim.world.clock import Horizon
from raysim.world.delay import duration_of
from raysim.world.links import AllLinks, Links
from raysim.world.mixing import Neighbours
from raysim.world.network import Mail, Network
from raysim.world.peers_happening import Exchanged, Joined, Next
from raysim.world.topology import edges_of


def next_with_peers(presence: Presence | None, time: float, peers: int) -> tuple[float, Sequence[int]]:
    """Returns the first time from a time on at which there are peers, and these. presence: None if all always are."""
    if presence is None:
        return time, range(peers)
    while not (there := presence.mask(time)).any():
        time = presence.next_change(time)
    return time, np.flatnonzero(there).tolist()


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
        epoch = self._topology.epoch(round, time)
        if epoch != self._epoch or time >= self._until:
            graph = edges_of(self._topology, self._peers, self._seed, epoch)
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
        graph = edges_of(self._topology, self._peers, self._seed, self._epoch)
        can = self._presence.mask(time)[graph.target] & (graph.source == peer)
        if self._links is not None:
            can &= self._links.up(graph, time)
        able = graph.target[can].tolist()
        heir = (able[int(self._heirs(peer, number).integers(len(able)))],) if able else ()
        return Neighbours((), (), heir, (1.0,) * len(heir))


def _equal(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


class PeersTimeline(ABC):
    """The base of timelines of peers: iterate over one to get all rounds, in order.

    horizon: when it ends, and when models are evaluated. cost: returns the cost of a peer with its neighbours, if the
    delay needs it. start: what follows each peer's first state. later: peers that are not there at first, and do not
    start from the first model. consumes, lag, sends_first: as in `Peer`.
    """

    def __init__(
        self,
        world: World,
        topology: Topology,
        peers: int,
        horizon: Horizon,
        seed: int,
        cost: Callable[[int, Neighbours], Cost] | None = None,
        *,
        consumes: bool = False,
        lag: int = 0,
        sends_first: bool = False,
    ) -> None:
        self.world, self.topology = world, topology
        self.peers, self.horizon = peers, horizon
        self._cost, self._seed = cost, seed
        self._consumes, self._lag, self._sends_first = consumes, lag, sends_first
        self._durations = Stream(seed, "delay")
        self._network = Network(world.loss, world.edge_delay, seed, keeps_lost=world.on_loss == "kept")
        self._graphs = self._new_graphs()
        self._mail = Mail()
        self._counts = [0] * peers  # mixes of each peer so far
        self._copied = Stream(seed, "copied")
        self.later: set[int] = set()
        if world.join != "first":
            self.later.update({*range(peers)}.difference(next_with_peers(self._new_presence(), 0.0, peers)[1]))
        self.start = self._first()

    @abstractmethod
    def __iter__(self) -> Iterator[Exchanged]:
        """Yields the rounds."""

    @abstractmethod
    def _first(self) -> tuple[Next, ...]:
        """Returns what follows each peer's first state."""

    def _new_graphs(self) -> Graphs:
        return Graphs(self.topology, self.world.links, self._new_presence(), self.peers, self._seed)

    def _new_presence(self) -> Presence | None:
        """Returns who is there, for times that never decrease; None if all peers always are."""
        always = isinstance(self.world.availability, Always)
        return None if always else self.world.availability.presence(self._seed, self.peers)

    @property
    def live(self) -> set[tuple[int, int]]:
        """Messages that mixes to come may use, by peer and number."""
        own = ((peer, count - back) for peer, count in enumerate(self._counts) for back in range(self._lag + 1))
        return self._mail.held.union(own)

    def _duration(self, peer: int, number: int, began: float) -> float:
        if self.world.delay.unit == "rounds":
            return 1.0
        cost = None
        if self._cost is not None:
            cost = self._cost(peer, self._near(peer, number, began))
        return duration_of(self.world.delay, self._durations, peer, number, cost)

    def _joined(self, peer: int, time: float, before: int, near: Neighbours, known: Container[int]) -> Joined:
        """Lets a peer join. near: its neighbours. known: the peers that have a model to copy."""
        able = [sender for sender in near.senders if sender in known] if self.world.join == "copy" else []
        return Joined(peer, time, able[int(self._copied(peer).integers(len(able)))] if able else None, before)

    def _near(self, peer: int, number: int, began: float) -> Neighbours:
        """Returns with whom a peer exchanges messages after a training."""
        return self._graphs.at(number if self.world.synchronous else 0, began)[peer]

    def _ends(self, over: int, end: float, next_end: Callable[[], float], mixes: int | None = None) -> str | None:
        """Returns what ends the run after so many rounds; None if it continues.

        end: when the last of them ends. next_end: returns when the next one would end. mixes: how many there were; by
        default, one of each peer in each round.
        """
        if ends := self.horizon.ends(over, end, over * self.peers if mixes is None else mixes):
            return ends
        return "virtual_time" if self.horizon.time < math.inf and next_end() > self.horizon.time else None

    def _is_evaluated(self, over: int, end: float, next_end: Callable[[], float]) -> bool:
        """Whether models are evaluated after so many rounds, if the run continues: because of their number, or because
        these are all that are over at a virtual time of an evaluation. end, next_end: as for `_ends`."""
        if self.horizon.every_time is None:
            return self.horizon.is_evaluated(over)
        return self.horizon.next_due(end) < next_end()

    def _require_a_round(self, end: float) -> None:
        """Raises BadInput if not even the first round is over in time. end: when it is."""
        if end > self.horizon.time:
            must = f"must be at least {end:g}, when the first round of peers is over"
            raise BadInput("run.until.virtual_time", f"{must}, got {self.horizon.time:g}; raise it")
