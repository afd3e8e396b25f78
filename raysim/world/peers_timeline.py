"""The timeline of peers: when each of them trains, and whose messages it mixes when, in virtual time.

It is a pure function of the scenario and handles no tensors. Order at equal times: training ends, messages are sent,
messages arrive, then peers mix, by their numbers.
"""

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np

from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream
from raysim.terms import Moment
from raysim.world import Cost, Topology, World
from raysim.world.availability import Always, Presence
from raysim.world.clock import Clock, Horizon
from raysim.world.delay import duration_of
from raysim.world.graphs import Graphs
from raysim.world.mixing import Neighbours
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
    share: float  # A_ij, of what the neighbour pushed


class Answered(NamedTuple):
    """A peer that another one asks to exchange models. It mixes as well, while its training goes on."""

    peer: int
    number: int  # mixes of this peer before it
    kept: bool  # whether the state is evaluated, or is the peer's last


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
    answer: Answered | None = None  # the peer of which it asked an exchange, if that took place

    @property
    def changed(self) -> tuple[tuple[int, int], ...]:
        """The peers whose models it changes, each with the number of its mixes before."""
        own = (self.peer, self.number)
        return (own, self.answer[:2]) if self.answer else (own,)

    @property
    def kept(self) -> float:
        """The share A_ii of its own message, which the peer does not push to others."""
        return 1 - sum(message.share for message in self.sent)


class Exchanged(NamedTuple):
    """A round: every peer that is there has mixed once or, if peers do not wait, there were as many mixes as peers."""

    round: int
    time: float
    mixed: tuple[Mixed, ...]  # in order of time
    evaluated: bool  # whether models are evaluated after it
    ends: str | None  # what ends the run with it: rounds, updates or virtual_time; None if it goes on
    present: tuple[int, ...] | None = None  # the peers that are there at its end, who are evaluated; None: all

    @property
    def version(self) -> int:
        """Number of rounds that are over."""
        return self.round + 1

    @property
    def moment(self) -> Moment:
        """The end of the round."""
        return Moment(self.version, self.version, self.time)


class _Sending(NamedTuple):
    """What peers send in a round in which all wait for all."""

    round: int
    began: float
    near: Sequence[Neighbours]  # of each peer
    counts: list[int]  # mixes of each peer before
    trained: dict[int, float]  # when each peer that is there has trained
    sent: dict[int, tuple[Sent, ...]]  # by each of them
    there: Sequence[int]  # these peers, without those that only hand over what they have
    arrived: dict[tuple[int, int], Sent]  # by source and target
    end: float

    @property
    def after(self) -> list[int]:
        """Mixes of each peer after it."""
        return [count + (peer in self.trained) for peer, count in enumerate(self.counts)]


def _next_with_peers(presence: Presence | None, time: float, peers: int) -> tuple[float, Sequence[int]]:
    """Returns the first time from a time on at which there are peers, and these. presence: None if all always are."""
    if presence is None:
        return time, range(peers)
    while not (there := presence.mask(time)).any():
        time = presence.next_change(time)
    return time, np.flatnonzero(there).tolist()


def _with_heirs(near: Sequence[Neighbours], gone: dict[int, Neighbours]) -> Sequence[Neighbours]:
    """Returns the neighbours of each peer where some have gone, and hand over what they have. gone: those of these."""
    found = list(near)
    for peer, row in gone.items():
        found[peer] = row
        for heir in row.receivers:
            before = found[heir]
            found[heir] = before._replace(senders=(*before.senders, peer), weights=(*before.weights, 0.0))
    return found


class PeersTimeline:
    """What happens in a run of peers: iterate over it to get all rounds, in order.

    horizon: when it ends, and when models are evaluated. For peers that do not wait for each other, it must end. cost:
    returns the cost of a peer with its neighbours, if the delay needs it. start: what follows each peer's first
    state. consumes, lag, sends_first: as in `Peer`.
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
        self._changes = not isinstance(world.availability, Always)  # whether peers come and go
        if world.synchronous:
            self.start = (Next(trains=True, kept=self._changes),) * peers
        else:
            self._foresee()

    def __iter__(self) -> Iterator[Exchanged]:
        return self._in_rounds() if self.world.synchronous else self._in_gossip()

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

    def _near(self, peer: int, number: int, began: float) -> Neighbours:
        """Returns with whom a peer exchanges messages after a training."""
        return self._graphs.at(number if self.world.synchronous else 0, began)[peer]

    def _ends(self, over: int, end: float, next_end: Callable[[], float], mixes: int | None = None) -> str | None:
        """Returns what ends the run after so many rounds; None if it goes on.

        end: when the last of them ends. next_end: returns when the next one would end. mixes: how many there were; by
        default, one of each peer in each round.
        """
        if ends := self.horizon.ends(over, end, over * self.peers if mixes is None else mixes):
            return ends
        return "virtual_time" if self.horizon.time < math.inf and next_end() > self.horizon.time else None

    def _is_evaluated(self, over: int, end: float, next_end: Callable[[], float]) -> bool:
        """Whether models are evaluated after so many rounds, if the run goes on: because of their number, or because
        these are all that are over at a virtual time of an evaluation. end, next_end: as for `_ends`."""
        if self.horizon.every_time is None:
            return self.horizon.is_evaluated(over)
        return self.horizon.next_due(end) < next_end()

    def _require_a_round(self, end: float) -> None:
        """Raises BadInput if not even the first round is over in time. end: when it is."""
        if end > self.horizon.time:
            must = f"must be at least {end:g}, when the first round of peers is over"
            raise BadInput("run.until.virtual_time", f"{must}, got {self.horizon.time:g}; raise it")

    # --- all wait for all ---------------------------------------------------------------------------------------------

    def _in_rounds(self) -> Iterator[Exchanged]:
        under_way: deque[_Sending] = deque(maxlen=self._lag + 1)  # the last of them is that of the current round
        presence = self._new_presence()
        current = self._sent_in(0, *_next_with_peers(presence, 0.0, self.peers), (), [0] * self.peers, ())
        self._require_a_round(current.end)
        while True:
            under_way.append(current)
            following = cache(partial(self._following, current, presence, under_way))
            over, end, counts = current.round + 1, current.end, current.after
            times = (over, end, lambda sent=following: sent().end)
            ends = self._ends(*times, sum(counts))
            evaluated = ends is not None or self._is_evaluated(*times)
            self._counts = counts
            heard = self._heard_in(current.round, under_way)
            # Of peers that come and go, any state may be the one with which a peer is evaluated next.
            mixed = self._mixed_in(current, heard, Next(ends is None, evaluated or self._changes))
            yield Exchanged(current.round, end, mixed, evaluated, ends, (*current.there,) if self._changes else None)
            if ends is not None:
                return
            current = following()

    def _following(self, before: _Sending, presence: Presence | None, earlier: Iterable[_Sending]) -> _Sending:
        began, there = _next_with_peers(presence, before.end, self.peers)
        gone = sorted({*before.there} - {*there}) if self.world.leave == "hand_over" else ()
        return self._sent_in(before.round + 1, began, there, gone, before.after, earlier)

    def _sent_in(
        self,
        round: int,
        began: float,
        there: Sequence[int],
        gone: Sequence[int],
        counts: list[int],
        earlier: Iterable[_Sending],
    ) -> _Sending:
        """Returns what the peers that are there send in a round that began then. gone: others, who hand over what they
        have. counts: mixes of each peer before. earlier: what they sent in rounds before."""
        near: Sequence[Neighbours] = self._graphs.at(round, began)
        if gone:
            near = _with_heirs(near, {peer: self._graphs.leaving(peer, counts[peer], began) for peer in gone})
        trained = {peer: began + self._duration(peer, counts[peer], began) for peer in (*there, *gone)}
        sent = {peer: self._network.send(peer, counts[peer], trained[peer], near[peer]) for peer in trained}
        every = (one for of_peer in sent.values() for one in of_peer)
        arrived = {(one.source, one.target): one for one in every if one.arrives is not None}
        sending = _Sending(round, began, near, counts, trained, sent, there, arrived, max(trained.values()))
        heard = self._heard_in(round, [*earlier, sending])
        awaited = (one.arrives for one in heard.arrived.values() if one.arrives is not None) if heard else ()
        return sending._replace(end=max(sending.end, *awaited, began))

    def _heard_in(self, round: int, sendings: Iterable[_Sending]) -> _Sending | None:
        """Returns the one of which peers mix the messages in a round; None if it would be before the first round."""
        return next((sending for sending in sendings if sending.round == round - self._lag), None)

    def _mixed_in(self, sending: _Sending, heard: _Sending | None, after: Next) -> tuple[Mixed, ...]:
        """Returns the mixes of a round. heard: whose messages are mixed. after: what follows each mix."""
        mixed = []
        for serial, (peer, trained) in enumerate(sending.trained.items(), sum(sending.counts)):
            inbox = tuple(self._inbox_of(peer, heard, sending.end)) if heard else ()
            of_peer = (sending.began, trained, sending.end, inbox, sending.sent[peer], after)
            mixed.append(Mixed(serial, peer, sending.counts[peer], *of_peer))
        return tuple(mixed)

    def _inbox_of(self, peer: int, heard: _Sending, time: float) -> Iterator[Heard]:
        near = heard.near[peer]
        for source, weight in zip(near.senders, near.weights, strict=True):
            if one := heard.arrived.get((source, peer)):
                yield Heard(source, one.number, weight, time - one.time if self._lag else 0.0, one.share)

    # --- nobody waits -------------------------------------------------------------------------------------------------

    def _foresee(self) -> None:
        """Finds out when each peer mixes and which mix is its last. Neither depends on messages."""
        coming = self._coming()
        self._times, self._who = array("d"), array("i")  # time and peer of each mix of the run
        # Whether models are evaluated after each round, and what ends the run with it.
        self._rounds: list[tuple[bool, str | None]] = []
        self._kept: set[int] = set()  # states that are evaluated
        self._totals = [0] * self.peers  # mixes of each peer
        last: dict[int, int] = {}  # the latest state of each peer
        early: set[int] = set()  # peers that have mixed before the first evaluation
        ends: str | None = None
        self._require_a_round(self._end_of(0, coming))
        while ends is None:
            round = len(self._rounds)
            times = (round + 1, self._end_of(round, coming), partial(self._end_of, round + 1, coming))
            ends = self._ends(*times)
            evaluated = ends is not None or self._is_evaluated(*times)
            self._rounds.append((evaluated, ends))
            for serial in range(round * self.peers, (round + 1) * self.peers):
                self._totals[self._who[serial]] += 1
                last.update(self._states_of(serial))
            if evaluated:
                self._kept |= set(last.values())
                early = early or set(last)
        mixes = len(self._rounds) * self.peers
        del self._times[mixes:], self._who[mixes:]
        first = self._sends_first  # also a peer that never mixes then has a model to send
        self.start = tuple(Next(self._totals[peer] > 0, first or peer not in early) for peer in range(self.peers))

    def _states_of(self, serial: int) -> tuple[tuple[int, int], ...]:
        """Returns the peers whose states a mix changes, and a number for each state."""
        return ((self._who[serial], serial),)

    def _end_of(self, round: int, coming: Iterator[tuple[float, int]]) -> float:
        """Returns when a round is over, and notes its mixes unless they are known. coming: the other ones."""
        for time, peer in islice(coming, (round + 1) * self.peers - len(self._times)):
            self._times.append(time)
            self._who.append(peer)
        return self._times[(round + 1) * self.peers - 1]

    def _coming(self) -> Iterator[tuple[float, int]]:
        """Yields the time and the peer of each mix, in order, without an end."""
        clock: Clock[int] = Clock()
        presence, there, change = self._new_presence(), np.zeros(self.peers, dtype=bool), 0.0
        rest = [self._after(0.0, peer, 0) for peer in range(self.peers)]  # of each training, while a peer is away
        ends = [math.inf] * self.peers  # when each training ends; infinite while a peer is away
        counts = [0] * self.peers
        while True:
            while change < math.inf and (not len(clock) or change <= clock.next_time):  # somebody comes or goes
                now, before = change, there
                there = np.ones(self.peers, dtype=bool) if presence is None else presence.mask(now)
                change = math.inf if presence is None else presence.next_change(now)
                for peer in np.flatnonzero(there & ~before).tolist():
                    ends[peer] = now + rest[peer]
                    clock.schedule(ends[peer], peer, peer)
                for peer in np.flatnonzero(before & ~there).tolist():
                    rest[peer], ends[peer] = ends[peer] - now, math.inf
                    if self.world.leave == "hand_over":
                        yield now, peer
                        counts[peer] += 1
                        rest[peer] = self._after(now, peer, counts[peer]) - now
            peer = clock.pop()
            if clock.now != ends[peer]:  # the peer has been away since then
                continue
            counts[peer] += 1
            yield clock.now, peer
            ends[peer] = self._after(clock.now, peer, counts[peer])
            clock.schedule(ends[peer], peer, peer)

    def _after(self, began: float, peer: int, number: int) -> float:
        """Returns when the training is over. Raises ValueError if it takes no time."""
        duration = self._duration(peer, number, began)
        if began + duration <= began:
            text = f"must be longer than 0 seconds for peers that do not wait, got {duration!r} for peer {peer}"
            raise BadInput("world.delay", f"{text}, its training {number}; take another distribution")
        return began + duration

    def _in_gossip(self) -> Iterator[Exchanged]:
        self._graphs = self._new_graphs()  # because it has come to the end of the run
        presence, mixed, hands_over = self._new_presence(), [], self.world.leave == "hand_over"
        before = [0.0] * self.peers  # when each peer began to train
        sent: dict[int, tuple[Sent, ...]] = {}  # by each peer
        gone: set[int] = set()  # peers that hand over what they have

        def send(peers: Iterable[int], time: float) -> None:
            near = self._graphs.at(0, time)
            gone.clear()
            for peer in peers:
                row = near[peer]
                if hands_over and presence is not None and not presence.mask(time)[peer]:
                    row = self._graphs.leaving(peer, self._counts[peer], time)
                    gone.add(peer)
                sent[peer] = self._network.send(peer, self._counts[peer], time, row)
                self._mail.put(sent[peer])

        if self._sends_first:
            send(range(self.peers), 0.0)
        for time, serials in groupby(range(len(self._times)), self._times.__getitem__):
            together = list(serials)
            if not self._sends_first:
                send([self._who[serial] for serial in together], time)
            for serial in together:
                peer = self._who[serial]
                mixed.append(self._mix(serial, before[peer], time, sent[peer], hears=peer not in gone))
                before[peer] = time
                if len(mixed) == self.peers:
                    round = serial // self.peers
                    present = None if presence is None else tuple(np.flatnonzero(presence.mask(time)).tolist())
                    yield Exchanged(round, time, tuple(mixed), *self._rounds[round], present)
                    mixed = []
            if self._sends_first:
                send([self._who[serial] for serial in together], time)

    def _mix(self, serial: int, began: float, time: float, sent: tuple[Sent, ...], *, hears: bool = True) -> Mixed:
        peer = self._who[serial]
        near, number = self._graphs.at(0, time)[peer], self._counts[peer]
        weights = dict(zip(near.senders, near.weights, strict=True))
        if self._consumes:
            heard = self._mail.taken(peer, time) if hears else []
        else:
            self._mail.keep(peer, near.senders)
            heard = [newest for other in near.senders if (newest := self._mail.newest(other, peer, time))]
        inbox = [Heard(s.source, s.number, weights.get(s.source, 0.0), time - s.time, s.share) for s in heard]
        self._counts[peer] += 1
        after = Next(self._counts[peer] < self._totals[peer], serial in self._kept)
        return Mixed(serial, peer, number, began, time, time, tuple(inbox), sent, after)
