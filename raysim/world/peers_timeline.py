"""The timeline of peers: when each of them trains, and whose messages it mixes when, in virtual time.

It is a pure function of the scenario and handles no tensors. Order at equal times: training ends, messages are sent,
messages arrive, then peers mix, by their numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream
from raysim.terms import Moment
from raysim.world import Cost, Topology, World
from raysim.world.clock import Clock
from raysim.world.delay import duration_of
from raysim.world.network import Mail, Network, Sent


class Next(NamedTuple):
    """What follows a new state of a peer, or its first one: more training, an evaluation, both or neither."""

    trains: bool  # the peer trains from it, because it will mix once more before the end
    kept: bool  # the state is evaluated, or is the peer's last


class Heard(NamedTuple):
    """A neighbour's message that a peer mixes."""

    peer: int
    number: int  # messages of that peer before it
    weight: float  # W_ij
    age: float  # virtual time since it was sent; 0 if all wait for all


class Mixed(NamedTuple):
    """A mix: a peer has trained and sent a message, and mixes the messages that it has received."""

    serial: int  # number of the mix in the run
    peer: int
    number: int  # mixes of this peer before it; also the number of the message that it sends
    began: float  # when it began to train
    trained: float  # when its training was over and its message was sent
    time: float  # when it mixes
    inbox: tuple[Heard, ...]  # in order of neighbours
    sent: tuple[Sent, ...]
    next: Next  # what follows the mixed state


class Exchanged(NamedTuple):
    """A round: every peer has mixed once or, if peers do not wait, there were as many mixes as there are peers."""

    round: int
    time: float
    mixed: tuple[Mixed, ...]  # in order of time
    evaluated: bool  # whether models are evaluated after it

    @property
    def version(self) -> int:
        """Number of rounds that are over."""
        return self.round + 1

    @property
    def moment(self) -> Moment:
        """The end of the round."""
        return Moment(self.version, self.version, self.time)


class PeersTimeline:
    """What happens in a run of peers: iterate over it to get all rounds, in order.

    evaluate_every: rounds from one evaluation to the next; the last round is always evaluated. cost: returns the cost
    of a peer with so many neighbours, if the delay needs it. start: what follows each peer's first state.
    """

    def __init__(
        self,
        world: World,
        topology: Topology,
        peers: int,
        rounds: int,
        evaluate_every: int,
        seed: int,
        cost: Callable[[int, int], Cost] | None = None,
    ) -> None:
        self.world, self.topology = world, topology
        self.peers, self.rounds, self._every = peers, rounds, evaluate_every
        self._cost = cost
        self._durations = Stream(seed, "delay")
        self._network = Network(world, topology, peers, seed)
        self._mail = Mail()
        self._counts = [0] * peers  # mixes of each peer so far
        if world.synchronous:
            self.start = (Next(trains=True, kept=False),) * peers
        else:
            self._foresee()

    def __iter__(self) -> Iterator[Exchanged]:
        return self._in_rounds() if self.world.synchronous else self._in_gossip()

    @property
    def live(self) -> set[tuple[int, int]]:
        """Messages that mixes to come may use, by peer and number."""
        return self._mail.held | set(enumerate(self._counts))

    def _duration(self, peer: int, number: int) -> float:
        if self.world.delay.unit == "rounds":
            return 1.0
        cost = None
        if self._cost is not None:
            near = self._network.neighbours(self.topology.epoch(number) if self.world.synchronous else 0)
            cost = self._cost(peer, len(near[peer].peers))
        return duration_of(self.world.delay, self._durations, peer, number, cost)

    def _is_evaluated(self, round: int) -> bool:
        return (round + 1) % self._every == 0 or round + 1 == self.rounds

    # --- all wait for all ---------------------------------------------------------------------------------------------

    def _in_rounds(self) -> Iterator[Exchanged]:
        began, everybody = 0.0, range(self.peers)
        for round in range(self.rounds):
            near = self._network.neighbours(self.topology.epoch(round))
            trained = [began + self._duration(peer, round) for peer in everybody]
            sent = [self._network.send(peer, round, trained[peer], near[peer].peers) for peer in everybody]
            arrivals = {(s.source, s.target): s.arrives for of_peer in sent for s in of_peer if s.arrives is not None}
            end = max(*trained, *arrivals.values())
            evaluated = self._is_evaluated(round)
            after = Next(trains=round + 1 < self.rounds, kept=evaluated)
            mixed = []
            for peer in everybody:
                pairs = zip(near[peer].peers, near[peer].weights, strict=True)
                inbox = tuple(Heard(j, round, weight, 0.0) for j, weight in pairs if (j, peer) in arrivals)
                serial = round * self.peers + peer
                mixed.append(Mixed(serial, peer, round, began, trained[peer], end, inbox, sent[peer], after))
            self._counts = [round + 1] * self.peers
            yield Exchanged(round, end, tuple(mixed), evaluated)
            began = end

    # --- nobody waits -------------------------------------------------------------------------------------------------

    def _foresee(self) -> None:
        """Finds out when each peer mixes and which mix is its last. Neither depends on messages."""
        clock: Clock[int] = Clock()
        for peer in range(self.peers):
            clock.schedule(self._after(0.0, peer, 0), peer, peer)
        self._times, self._who = array("d"), array("i")  # time and peer of each mix of the run
        self._kept: set[int] = set()  # mixes whose states are evaluated
        self._totals = [0] * self.peers  # mixes of each peer
        last: dict[int, int] = {}  # the latest mix of each peer
        early: set[int] = set()  # peers that have mixed before the first evaluation
        for serial in range(self.rounds * self.peers):
            peer = clock.pop()
            self._times.append(clock.now)
            self._who.append(peer)
            self._totals[peer] += 1
            last[peer] = serial
            clock.schedule(self._after(clock.now, peer, self._totals[peer]), peer, peer)
            if (serial + 1) % self.peers == 0 and self._is_evaluated(serial // self.peers):
                self._kept |= set(last.values())
                early = early or set(last)
        self.start = tuple(Next(self._totals[peer] > 0, peer not in early) for peer in range(self.peers))

    def _after(self, began: float, peer: int, number: int) -> float:
        """Returns when the training is over. Raises ValueError if it takes no time."""
        duration = self._duration(peer, number)
        if began + duration <= began:
            raise BadInput(
                "world.delay",
                f"must be longer than 0 seconds for peers that do not wait, got {duration!r} for peer "
                f"{peer}, its training {number}; take another distribution",
            )
        return began + duration

    def _in_gossip(self) -> Iterator[Exchanged]:
        near, mixed = self._network.neighbours(0), []
        before = [0.0] * self.peers  # when each peer began to train
        for time, serials in groupby(range(len(self._times)), self._times.__getitem__):
            together = list(serials)
            sent = {}
            for peer in map(self._who.__getitem__, together):
                sent[peer] = self._network.send(peer, self._counts[peer], time, near[peer].peers)
                self._mail.put(sent[peer])
            for serial in together:
                peer = self._who[serial]
                mixed.append(self._mix(serial, before[peer], time, sent[peer]))
                before[peer] = time
                if len(mixed) == self.peers:
                    round = serial // self.peers
                    yield Exchanged(round, time, tuple(mixed), self._is_evaluated(round))
                    mixed = []

    def _mix(self, serial: int, began: float, time: float, sent: tuple[Sent, ...]) -> Mixed:
        peer = self._who[serial]
        near, number = self._network.neighbours(0)[peer], self._counts[peer]
        inbox = []
        for other, weight in zip(near.peers, near.weights, strict=True):
            if newest := self._mail.newest(other, peer, time):
                inbox.append(Heard(other, newest.number, weight, time - newest.time))
        self._counts[peer] += 1
        after = Next(self._counts[peer] < self._totals[peer], serial in self._kept)
        return Mixed(serial, peer, number, began, time, time, tuple(inbox), sent, after)
