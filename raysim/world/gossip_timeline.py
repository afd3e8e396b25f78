"""The timeline of peers that do not wait for each other: each mixes when its own training is over."""

import math
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby, islice

import numpy as np

from raysim.parts.errors import BadInput
from raysim.world.clock import Clock
from raysim.world.network import Sent
from raysim.world.peers_happening import Exchanged, Heard, Joined, Mixed, Next
from raysim.world.peers_timeline import PeersTimeline


class GossipTimeline(PeersTimeline):
    """What happens in a run of peers that do not wait. It must end, and a round is as many mixes as there are peers."""

    def _first(self) -> tuple[Next, ...]:
        """Finds out when each peer mixes and which mix is its last. Neither depends on messages."""
        self._joining: list[Joined] = []  # `before` counts the mixes of all rounds
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
        # A peer that never mixes may yet send its model, or another may copy it.
        first = self._sends_first or bool(self.later)
        trains = [total > 0 and peer not in self.later for peer, total in enumerate(self._totals)]
        return tuple(Next(trains[peer], first or peer not in early) for peer in range(self.peers))

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
        counts, known = [0] * self.peers, {*range(self.peers)} - self.later
        while True:
            while change < math.inf and (not len(clock) or change <= clock.next_time):  # somebody comes or goes
                now, before = change, there
                there = np.ones(self.peers, dtype=bool) if presence is None else presence.mask(now)
                change = math.inf if presence is None else presence.next_change(now)
                come = np.flatnonzero(there & ~before).tolist()
                for peer in come:
                    ends[peer] = now + rest[peer]
                    clock.schedule(ends[peer], peer, peer)
                    if peer not in known:
                        self._join(self._joined(peer, now, len(self._who), self._graphs.at(0, now)[peer], known))
                known.update(come)
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

    def _join(self, joined: Joined) -> None:
        """Takes note of a peer that comes, and that the state which it copies, the peer's latest, is to be kept."""
        self._joining.append(joined)
        places = (place for place in range(joined.before - 1, -1, -1) if self._who[place] == joined.of)
        self._kept.update(islice(places, joined.of is not None))

    def _after(self, began: float, peer: int, number: int) -> float:
        """Returns when the training is over. Raises ValueError if it takes no time."""
        duration = self._duration(peer, number, began)
        if began + duration <= began:
            text = f"must be longer than 0 seconds for peers that do not wait, got {duration!r} for peer {peer}"
            raise BadInput("world.delay", f"{text}, its training {number}; take another distribution")
        return began + duration

    def __iter__(self) -> Iterator[Exchanged]:
        self._graphs = self._new_graphs()  # because it has come to the end of the run
        presence, mixed, hands_over = self._new_presence(), list[Mixed](), self.world.leave == "hand_over"
        before = [0.0] * self.peers  # when each peer began to train
        sent: dict[int, tuple[Sent, ...]] = {}  # by each peer
        gone: set[int] = set()  # peers that hand over what they have
        joining, joined = deque(self._joining), list[Joined]()

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
            while joining and joining[0].before <= together[0]:
                one = joining.popleft()
                joined.append(one._replace(before=len(mixed), next=Next(self._totals[one.peer] > 0, kept=True)))
                before[one.peer] = one.time
                if self._sends_first:
                    send([one.peer], one.time)
            if not self._sends_first:
                send([self._who[serial] for serial in together], time)
            for serial in together:
                peer = self._who[serial]
                mixed.append(self._mix(serial, before[peer], time, sent[peer], hears=peer not in gone))
                before[peer] = time
                if len(mixed) == self.peers:
                    round = serial // self.peers
                    present = None if presence is None else tuple(np.flatnonzero(presence.mask(time)).tolist())
                    yield Exchanged(round, time, tuple(mixed), *self._rounds[round], present, tuple(joined))
                    mixed, joined = [], []
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
