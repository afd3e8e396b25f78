"""The timeline of peers of whom all wait for all: a round is over when the last of its messages has come."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

from raysim.world.availability import Always, Presence
from raysim.world.mixing import Neighbours
from raysim.world.network import Sent
from raysim.world.peers_happening import Exchanged, Heard, Joined, Mixed, Next
from raysim.world.peers_timeline import PeersTimeline, next_with_peers


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
    joined: tuple[Joined, ...]  # peers that come to it

    @property
    def after(self) -> list[int]:
        """Mixes of each peer after it."""
        return [count + (peer in self.trained) for peer, count in enumerate(self.counts)]


class RoundsTimeline(PeersTimeline):
    """What happens in a run of peers that wait for each other."""

    def _first(self) -> tuple[Next, ...]:
        self._changes = not isinstance(self.world.availability, Always)  # whether peers come and go
        return tuple(Next(trains=peer not in self.later, kept=self._changes) for peer in range(self.peers))

    def __iter__(self) -> Iterator[Exchanged]:
        under_way: deque[_Sending] = deque(maxlen=self._lag + 1)  # the last of them is that of the current round
        presence = self._new_presence()
        current = self._sent_in(0, *next_with_peers(presence, 0.0, self.peers), (), [0] * self.peers, ())
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
            present = (*current.there,) if self._changes else None
            yield Exchanged(current.round, end, mixed, evaluated, ends, present, current.joined)
            if ends is not None:
                return
            current = following()

    def _following(self, before: _Sending, presence: Presence | None, earlier: Iterable[_Sending]) -> _Sending:
        began, there = next_with_peers(presence, before.end, self.peers)
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
        new = [peer for peer in there if peer in self.later and not counts[peer]]
        known = {peer for peer, count in enumerate(counts if new else ()) if count or peer not in self.later}
        joined = tuple(self._joined(peer, began, 0, near[peer], known) for peer in new)
        trained = {peer: began + self._duration(peer, counts[peer], began) for peer in (*there, *gone)}
        sent = {peer: self._network.send(peer, counts[peer], trained[peer], near[peer]) for peer in trained}
        every = (one for of_peer in sent.values() for one in of_peer)
        arrived = {(one.source, one.target): one for one in every if one.arrives is not None}
        sending = _Sending(round, began, near, counts, trained, sent, there, arrived, max(trained.values()), joined)
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


def _with_heirs(near: Sequence[Neighbours], gone: dict[int, Neighbours]) -> Sequence[Neighbours]:
    """Returns the neighbours of each peer where some have gone, and hand over what they have. gone: those of these."""
    found = list(near)
    for peer, row in gone.items():
        found[peer] = row
        for heir in row.receivers:
            before = found[heir]
            found[heir] = before._replace(senders=(*before.senders, peer), weights=(*before.weights, 0.0))
    return found
