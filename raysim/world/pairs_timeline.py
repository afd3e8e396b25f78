"""The timeline of peers that exchange models in pairs: who asks whom when, and when both have mixed.

A peer whose training is over asks one neighbour, drawn at random. An exchange blocks both peers from the request to the
answer, which take the delays of two messages; the training of the peer that is asked continues. A request waits until
both are free: earlier requests go first, then those of lower numbers. A peer that waits can still be asked, so peers
never wait for each other in a circle. Order at equal times: training ends, by the numbers of peers, then exchanges do.
"""

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from raysim.parts.rng import Stream
from raysim.world.clock import Clock
from raysim.world.gossip_timeline import GossipTimeline
from raysim.world.mixing import Neighbours
from raysim.world.network import Sent
from raysim.world.peers_happening import Answered, Exchanged, Heard, Mixed, Next

NOBODY = -1  # in place of the peer that is asked, where a peer has no neighbour


class _Request(NamedTuple):
    """A peer asks another for an exchange."""

    time: float
    peer: int
    other: int
    number: int  # exchanges that the peer asked for before; the key of all draws


def _only(other: int, messages: int) -> Neighbours:
    """Returns the neighbours of a peer that exchanges so many messages with one other."""
    return Neighbours((other,), (0.5,), (other,) * messages, (0.5,) * messages)


class PairsTimeline(GossipTimeline):
    """What happens in a run of peers of which two at a time exchange models. A round is over after as many exchanges as
    there are peers. If one of its messages is lost, an exchange ends when it begins, and both keep their models."""

    def _first(self) -> tuple[Next, ...]:
        self._draws = Stream(self._seed, "neighbour")
        # Of each exchange of the run: who was asked, when, and when it began; whether both models were exchanged.
        self._whom, self._asked, self._began, self._done = array("i"), array("d"), array("d"), array("b")
        return super()._first()

    def _near(self, peer: int, number: int, began: float) -> Neighbours:
        return _only(int(peer == 0), 1)  # any

    def _states_of(self, serial: int) -> tuple[tuple[int, int], ...]:
        own = (self._who[serial], 2 * serial)
        return (own, (self._whom[serial], 2 * serial + 1)) if self._done[serial] else (own,)

    def _request(self, peer: int, number: int, time: float) -> _Request:
        near = self._graphs.at(0, time)[peer].receivers
        other = near[int(self._draws(peer, number).integers(len(near)))] if near else NOBODY
        return _Request(self._after(time, peer, number), peer, other, number)

    def _messages(self, request: _Request, began: float) -> tuple[Sent, ...]:
        """Returns the request's message and, unless that is lost, the answer's; none if there is nobody to ask."""
        _, peer, other, number = request
        if other == NOBODY:
            return ()
        there, back = self._network.send(peer, number, began, _only(other, 2))
        if there.arrives is None:
            return (there,)
        arrives = None if back.arrives is None else there.arrives + (back.arrives - began)
        return there, Sent(other, peer, number, there.arrives, arrives)

    def _coming(self) -> Iterator[tuple[float, int]]:
        """Yields when each exchange is over, and who asked for it, in order, and notes the rest."""
        clock: Clock[tuple[_Request, float | None]] = Clock()  # requests, and exchanges with when they began
        busy: set[int] = set()
        waiting: list[set[_Request]] = [set() for _ in range(self.peers + 1)]  # by each peer of a request, and NOBODY

        def begin(request: _Request) -> None:
            """Begins an exchange, or lets it wait."""
            both = {request.peer, request.other} - {NOBODY}
            free = not busy & both
            for peer in both:
                (set.discard if free else set.add)(waiting[peer], request)
            if free:
                busy.update(both)
                arrives = [sent.arrives for sent in self._messages(request, clock.now)]
                ends = arrives[1] if len(arrives) == 2 and arrives[1] is not None else clock.now
                clock.schedule(ends, self.peers + request.peer, (request, clock.now))

        for first in (self._request(peer, 0, 0.0) for peer in range(self.peers)):
            clock.schedule(first.time, first.peer, (first, None))
        while True:
            request, began = clock.pop()
            if began is None:
                begin(request)
                continue
            asked, peer, other, number = request
            arrives = [sent.arrives for sent in self._messages(request, began)]
            self._whom.append(other)
            self._asked.append(asked)
            self._began.append(began)
            self._done.append(len(arrives) == 2 and None not in arrives)
            yield clock.now, peer
            following = self._request(peer, number + 1, clock.now)
            clock.schedule(following.time, peer, (following, None))
            busy -= {peer, other}
            for waited in sorted(waiting[peer] | waiting[other]):
                begin(waited)

    def __iter__(self) -> Iterator[Exchanged]:
        mixed, trains = [], [0.0] * self.peers  # when each peer began to train
        numbers = [0] * self.peers  # exchanges that each peer asked for
        for serial, time in enumerate(self._times):
            peer, other, began = self._who[serial], self._whom[serial], self._began[serial]
            request = _Request(self._asked[serial], peer, other, numbers[peer])
            numbers[peer] += 1
            inbox: list[Heard] = []
            answer = None
            if self._done[serial]:
                inbox.append(Heard(other, self._counts[other], 0.5, time - began, 0.5))
                answer = Answered(other, self._counts[other], 2 * serial + 1 in self._kept)
                self._counts[other] += 1
            after = Next(numbers[peer] < self._totals[peer], 2 * serial in self._kept)
            times, sent = (trains[peer], request.time, time), self._messages(request, began)
            mixed.append(Mixed(serial, peer, self._counts[peer], *times, tuple(inbox), sent, after, answer))
            self._counts[peer] += 1
            trains[peer] = time
            if len(mixed) == self.peers:
                round = serial // self.peers
                yield Exchanged(round, time, tuple(mixed), *self._rounds[round])
                mixed = []
