"""Decides which clients are dispatched, among those that are idle and available, of whom it keeps a roster."""

import math
from bisect import bisect_left, bisect_right, insort

import numpy as np
from numpy.typing import NDArray

from raysim.parts.errors import BadInput
from raysim.parts.rng import Stream
from raysim.world.availability import Always
from raysim.world.policies import Candidates, Reports, UniformPolicy
from raysim.world.server_happening import Dispatched
from raysim.world.world import World

_BLOCK = 1024  # clients
_FEW = 4096  # clients: so many are kept in a sorted list, where another one is soon put in its place


class Roster:
    """Which clients can be picked: those that are idle and available.

    The k-th of them is found without a look at all clients, of whom there may be millions: by those before it that
    cannot be picked, or, if they are many, by counts of blocks.

    away: those that cannot be picked, ascending; None if they are many.
    """

    def __init__(self, idle: NDArray[np.bool_]) -> None:
        """idle: which clients are idle at first, (clients,). All are available."""
        self._idle, self.idle = _flags(idle)  # to be changed by `move` alone
        self.show(np.ones(len(idle), dtype=bool))

    def show(self, available: NDArray[np.bool_]) -> None:
        """Sets who is available, (clients,)."""
        self._available, _ = _flags(available)
        self._pickable, self._both = _flags(self.idle & available)
        self.size = int(np.count_nonzero(self._both))
        self._count()

    def _count(self) -> None:
        """Lists those that cannot be picked, if they are few, or else counts the others by blocks."""
        clients = len(self._both)
        few = clients - self.size <= min(_FEW, clients // 2)
        self.away: list[int] | None = np.flatnonzero(~self._both).tolist() if few else None
        self._counts = np.add.reduceat(self._both, range(0, clients, _BLOCK), dtype=np.int64)

    def move(self, client: int, *, idle: bool) -> None:
        """Sets whether a client is idle."""
        if idle == self._idle[client]:
            return
        self._idle[client] = idle
        if not self._available[client]:
            return
        self._pickable[client] = idle
        self.size += 1 if idle else -1
        if self.away is None:
            self._counts[client // _BLOCK] += 1 if idle else -1
        elif idle:
            del self.away[bisect_left(self.away, client)]
        elif len(self.away) < _FEW:
            insort(self.away, client)
        else:
            self._count()

    def __contains__(self, client: int) -> bool:
        return 0 <= client < len(self._pickable) and bool(self._pickable[client])

    def all(self) -> NDArray[np.int64]:
        """Returns all clients that can be picked, ascending."""
        return self._both.nonzero()[0]

    def at(self, place: int) -> int:
        """Returns the client at a place of the ascending list that `all` returns."""
        if self.away is not None:
            client = place
            while client != (further := place + bisect_right(self.away, client)):
                client = further
            return client
        ends = np.add.accumulate(self._counts)
        block = int(ends.searchsorted(place, "right"))
        start = block * _BLOCK
        (found,) = self._both[start : start + _BLOCK].nonzero()
        return start + int(found[place - ends[block]])  # counted from the end of its block


def _flags(values: NDArray[np.bool_]) -> tuple[bytearray, NDArray[np.bool_]]:
    """Returns a copy of the values as a bytearray and as an array that share memory. Python reads and writes single
    bytes several times faster than elements of arrays."""
    content = bytearray(values.tobytes())
    return content, np.frombuffer(content, dtype=bool)


class Tiers:
    """Tiers of clients, each of which picks anew when all that it picked are back.

    of: the tier of each client, (clients,), where 0 is the fastest; -1 of those that hold no samples.
    """

    def __init__(self, number: int, samples: NDArray[np.int64], first_delays: NDArray[np.float64]) -> None:
        """number: how many tiers there are. samples: how many each client trains on, (clients,). first_delays: how long
        the first update takes or would take, of each client that holds some."""
        held = np.flatnonzero(samples)
        self.of = np.full(len(samples), -1)
        for tier, members in enumerate(np.array_split(held[np.argsort(first_delays, kind="stable")], number)):
            self.of[members] = tier
        self._under_way = [0] * number

    def waiting(self) -> list[int]:
        """Returns the tiers of which nobody is under way."""
        return [tier for tier, under_way in enumerate(self._under_way) if not under_way]

    def leaves(self, client: int) -> None:
        """Takes note that a client is dispatched."""
        self._under_way[self.of[client]] += 1

    def returns(self, client: int) -> bool:
        """Takes note that a client has arrived, or is lost. Returns whether it was the last one of its tier."""
        tier = self.of[client]
        self._under_way[tier] -= 1
        return not self._under_way[tier]


class Picker:
    """Decides which clients are dispatched each time that the timeline asks, as `world.dispatch` says: by its list of
    picks, each with its probability, or by its policy.

    samples: the number of samples that each client trains on, (clients,); a client with none is never picked. labels:
    how many samples of each label clients have, if the policy needs it, (clients, labels). tiers: those that clients
    are in, each of which picks by itself; None: none. roster: whose idle clients have samples and are not in flight;
    the timeline keeps it up to date. steady: whether any idle client replaces one that has arrived: the one at a place
    of the roster that `draws` draws for the dispatch.
    """

    def __init__(
        self,
        world: World,
        samples: NDArray[np.int64],
        seed: int,
        labels: NDArray[np.int64] | None = None,
        tiers: Tiers | None = None,
    ) -> None:
        self.roster = Roster(samples > 0)
        self._dispatch, self._samples, self._labels, self._tiers = world.dispatch, samples, labels, tiers
        self._in_flight = world.dispatch.in_flight or 0
        self._times = np.zeros_like(samples)  # how often the policy has picked each client
        self._reports = Reports.none(len(samples) if world.dispatch.policy.needs_losses else 0)
        self._presence = world.availability.presence(seed, len(samples))
        self._until = 0.0  # when others may be available than the roster says
        self.draws, self._rounds = Stream(seed, "pick"), Stream(seed, "pick by probability")
        self._uniform = type(world.dispatch.policy) is UniformPolicy
        by_policy = world.dispatch.picks is None and world.dispatch.probability is None
        self.steady = by_policy and self._uniform and tiers is None and type(world.availability) is Always

    def pick(self, time: float, round: int, in_flight: int, serial: int) -> list[int]:
        """Returns the clients to dispatch now. serial: the number of the next dispatch in the run.

        Raises BadInput if clients are given that cannot be picked.
        """
        dispatch = self._dispatch
        if dispatch.picks is not None:
            return [self._given(client, round) for client in dispatch.picks[round]]
        if time >= self._until:
            self.roster.show(self._presence.mask(time))
            self._until = self._presence.next_change(time)
        if dispatch.probability is not None:
            drawn = self._rounds(round).random(len(self._samples)) < dispatch.probability
            return [client for client in np.flatnonzero(drawn).tolist() if client in self.roster]
        if self._tiers is not None:
            picked = list[int]()
            for tier in self._tiers.waiting():
                idle = self.roster.all()
                idle = idle[self._tiers.of[idle] == tier]
                picked += self._of(idle, dispatch.per_tier or 0, round, serial + len(picked))
            return picked
        wanted, size = dispatch.per_round or self._in_flight - in_flight, self.roster.size
        if wanted <= 0 or not size:
            return []
        if self._uniform:  # needs no list of all clients
            places = UniformPolicy().places(size, wanted, self.draws(serial))
            return [self.roster.at(place) for place in places]
        return self._of(self.roster.all(), wanted, round, serial)

    def _given(self, client: int, round: int) -> int:
        """Returns a client that is listed for a round."""
        if not self._samples[client]:
            must = f"clients with samples to train on, got {client}, which has none; take it out"
        elif not self.roster.idle[client]:
            must = f"idle clients, got {client}, which is under way or gone; pick it after its update has arrived"
        else:
            return client
        raise BadInput("world.dispatch.picks", f"round {round} must pick {must}")

    def _of(self, idle: NDArray[np.int64], wanted: int, round: int, serial: int) -> list[int]:
        """Returns the clients that the policy picks. idle: the numbers of those that it may pick, ascending."""
        if not len(idle):
            return []
        candidates = Candidates(idle, self._samples, self._times, round, self._reports, self._labels)
        policy = self._dispatch.policy
        picked = [*map(int, policy.pick(candidates, wanted, self.draws(serial)))]
        known = np.isin(picked, idle).all()
        if not known or len(picked) > wanted or len(set(picked)) < len(picked):
            must = f"at most {wanted} of the idle clients, none of them twice"
            raise BadInput("world.dispatch.policy", f"{policy.name} must pick {must}, got {picked}; correct its `pick`")
        self._times[picked] += 1
        return picked

    def hear(self, dispatched: Dispatched, loss: float, staleness: float) -> None:
        """Takes note of what a client that has arrived reports, if the policy needs losses."""
        duration = dispatched.arrives - dispatched.time
        self._reports.set(dispatched.client, loss, dispatched.round, duration, staleness)

    def next_change(self, time: float) -> float | None:
        """Returns when other clients may be available; None if that never changes."""
        change = self._presence.next_change(time)
        return change if change < math.inf else None

    def next_look(self, time: float, in_flight: int) -> float | None:
        """Returns the next time to pick clients, even if no update arrives until then; None if waiting for arrivals
        is enough. It is asked only where the world has no rounds."""
        short = in_flight < self._in_flight and self.roster.idle.any()
        return self.next_change(time) if short else None
