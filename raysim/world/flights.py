"""Dispatches of a run with a server, from when a client is picked until a step uses its update, or it is lost."""

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import heappop, heapreplace
from itertools import repeat
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from raysim.parts.rng import Stream
from raysim.terms import ModelKey, Moment
from raysim.world.delay import Cost, duration_of, first_delays
from raysim.world.roster import Roster
from raysim.world.server_happening import Dispatched
from raysim.world.world import World

Waiting: TypeAlias = tuple[int, Dispatched, float]  # an update that has arrived: its serial, dispatch and staleness
CostOf: TypeAlias = Callable[[int, ModelKey, int | None, Moment], Cost]
_Flight: TypeAlias = tuple[float, int, int, int, int, float, int | None]  # the fields of `_dispatches`, in its order


class Flights:
    """The dispatches that no step has used yet, and what is drawn and counted of all.

    clients: how many there are. cost, measured, level: as in `ServerTimeline`. length: that of a round, if no step may
    use an update that arrives after its end.
    """

    def __init__(
        self,
        world: World,
        clients: int,
        seed: int,
        cost: CostOf | None,
        measured: Callable[[Dispatched], Cost] | None,
        level: Callable[[int, int], ModelKey] | None,
        length: float | None,
    ) -> None:
        self.serial = 0  # of the next dispatch
        self._numbers = [0] * clients  # of dispatches, by client
        self._had: list[int | None] = [None] * clients  # by client: as `Dispatched.had`
        self.flying: dict[int, Dispatched] = {}  # by serial
        self.waiting: list[Waiting] = []
        self.live: Counter[int] = Counter()  # by version: number of later updates that start from it
        self._delays, self._drops = Stream(seed, "delay"), Stream(seed, "dropout")
        self._delay, self._drop = world.delay, world.dropout.probability
        self._cost, self._measured, self._level, self._length = cost, measured, level, length

    # --- dispatches ---------------------------------------------------------------------------------------------------

    def dispatch(self, client: int, moment: Moment) -> tuple[Dispatched, float]:
        """Dispatches a client. Returns that, and when its update can arrive at the soonest."""
        number, had = self._numbers[client], self._had[client]
        reports = self._drop == 0 or bool(self._drops(client, number).random() >= self._drop)
        level, cost = self._foreseen(client, number, had, moment)
        if (follows := reports and self._measured is not None) and cost is not None:
            cost = cost._replace(flops=0.0, samples=0.0)  # it cannot arrive sooner than without training
        soonest = moment.time + duration_of(self._delay, self._delays, client, number, cost)
        arrives = math.inf if follows else soonest
        dispatched = Dispatched(self.serial, client, number, *moment, arrives, reports, level, had)
        self.serial += 1
        self._numbers[client] += 1
        self.flying[dispatched.serial] = dispatched
        if self.can_matter(dispatched):
            self.live[dispatched.version] += 1
        return dispatched, soonest

    def ask(self, dispatched: Dispatched) -> Dispatched | None:
        """Waits for the training of a dispatch on which its arrival depends, and returns the dispatch with its arrival;
        None if it was asked before."""
        if self._measured is None or self.flying[dispatched.serial].arrives < math.inf:
            return None
        cost = self._measured(dispatched)
        duration = duration_of(self._delay, self._delays, dispatched.client, dispatched.number, cost)
        known = self.flying[dispatched.serial] = dispatched._replace(arrives=dispatched.time + duration)
        return known

    def can_matter(self, dispatched: Dispatched) -> bool:
        """Whether a step may use the dispatch's update, so that it may still have to be trained.

        It cannot if the update is lost or certain to be late. It may if it arrives after the end, because a checkpoint
        holds all that a longer run would need.
        """
        late = self._length is not None and dispatched.arrives >= (dispatched.round + 1) * self._length
        return dispatched.reports and not late

    def end_of_round(self, round: int, wanted: int | None) -> float | None:
        """Returns when a round without a fixed length ends: with its last arrival, or as soon as so many clients as are
        wanted have reported. If it picked nobody, with the next arrival of an earlier round; None if there is none."""
        picked = [dispatched for dispatched in self.flying.values() if dispatched.round == round]
        reported = sorted(dispatched.arrives for dispatched in picked if dispatched.reports)
        if wanted is not None and len(reported) >= wanted:
            return reported[wanted - 1]
        if picked:
            return max(dispatched.arrives for dispatched in picked)
        return min((dispatched.arrives for dispatched in self.flying.values()), default=None)

    def first_delays(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns how long the first update of each of some clients takes or would take."""
        cost = lambda client: self._foreseen(client, 0, 0, Moment())[1]  # noqa: E731
        return first_delays(clients, self._delay, self._delays, cost)

    def _foreseen(self, client: int, number: int, had: int | None, moment: Moment) -> tuple[ModelKey, Cost | None]:
        """Returns the level of a dispatch, and what its update costs; None if the delay does not need that."""
        level = self._level(client, number) if self._level else 1.0
        return level, self._cost(client, level, had, moment) if self._cost else None

    # --- steps and ends -----------------------------------------------------------------------------------------------

    def take(self, arrived: list[Waiting]) -> tuple[tuple[Dispatched, ...], tuple[float, ...]]:
        """Takes some of those that wait away, for a step. Returns their dispatches in order, and their staleness."""
        serials, members, staleness = zip(*sorted(arrived), strict=True) if arrived else ((), (), ())
        gone = set(serials)
        self.waiting = [one for one in self.waiting if one[0] not in gone]
        return members, staleness

    def use(self, members: Iterable[Dispatched]) -> None:
        """Notes that a step uses the updates of these dispatches, in order."""
        for _, client, _, _, version, _, _, _, _, _ in members:
            self._had[client] = version

    def release(self, ended: Iterable[Dispatched]) -> None:
        """Lets go of the versions from which updates start that have ended."""
        for version, updates in Counter(map(itemgetter(4), ended)).items():
            self.live[version] -= updates
            if self.live[version] == 0:
                del self.live[version]

    # --- a fast loop --------------------------------------------------------------------------------------------------

    def replaced(
        self, roster: Roster, picks: Stream, size: int | None, end: float, over: Callable[[], bool]
    ) -> Iterator[tuple[float, tuple[Dispatched, ...]]]:
        """Lets updates arrive, and dispatches another client after each, until a virtual time.

        Yields the time of each step and the dispatches whose updates it uses, in order.

        roster: whose clients are all that do not fly. picks: draws their places. size: number of updates that a step
        waits for; None: no step comes. over: whether the timeline is over, which is asked after each step.
        """
        numbers, had, away, delay, delays = self._numbers, self._had, roster.away, self._delay, self._delays
        flying = sorted(
            (of.arrives, of.serial, of.client, of.number, of.version, of.time, of.had) for of in self.flying.values()
        )
        self.flying.popitem()  # whenever a step comes, one client has arrived and is not replaced yet
        serial, version, arrived = self.serial, 0, list[_Flight]()
        for place in picks.below(roster.size + 1, serial):
            back = flying[0]
            now, _, client, *_ = back
            if now > end:
                break
            arrived.append(back)
            if len(arrived) == size:
                self._follow(serial, version)
                yield now, _dispatches(arrived)
                version, arrived = version + 1, []
                if over():
                    heappop(flying)
                    break
            if away is None:
                roster.move(client, idle=True)
                client = roster.at(place)
                roster.move(client, idle=False)
            else:
                del away[bisect_left(away, client)]
                client = place
                while client != (further := place + bisect_right(away, client)):
                    client = further
                insort(away, client)
            number = numbers[client]
            numbers[client] = number + 1
            arrives = now + duration_of(delay, delays, client, number, None)
            heapreplace(flying, (arrives, serial, client, number, version, now, had[client]))
            serial += 1
        self._follow(serial, version)
        self.flying = {of.serial: of for of in _dispatches(flying)}
        self.waiting = [(of.serial, of, float(version - of.version)) for of in _dispatches(arrived)]

    def _follow(self, serial: int, version: int) -> None:
        """Takes note of dispatches of a version, all of which matter. serial: of the next one."""
        if serial > self.serial:
            self.live[version] += serial - self.serial
        self.serial = serial


_new = partial(tuple.__new__, Dispatched)  # sooner than by the class


def _dispatches(flights: list[_Flight]) -> tuple[Dispatched, ...]:
    """Returns the dispatches of a run without rounds, in order, that were made by `Flights.replaced`."""
    if not flights:
        return ()
    flights.sort(key=itemgetter(1))
    arrives, serial, client, number, version, time, had = zip(*flights, strict=True)
    every = zip(serial, client, number, version, version, time, arrives, repeat(True), repeat(1.0), had)
    return tuple(map(_new, every))
