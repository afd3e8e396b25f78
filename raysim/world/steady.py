"""A fast loop for timelines in which clients replace each other one by one."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Generator, Iterator
from heapq import heappop, heapreplace
from typing import NamedTuple

from raysim.parts.rng import Stream
from raysim.world.delay import Delay, duration_of
from raysim.world.roster import Roster
from raysim.world.server_happening import Dispatched, Flights, Happening


class Steady(NamedTuple):
    """The rest of a timeline in which as many clients as are wanted have just been dispatched, all others are there,
    and nothing but delays is drawn."""

    flights: Flights
    roster: Roster
    picks: Stream
    delay: Delay
    delays: Stream
    size: int | None  # number of updates that a step waits for; None: no step comes
    end: float  # virtual time

    def replacements(
        self, step: Callable[[float, list[Dispatched]], Generator[Happening, None, bool]]
    ) -> Iterator[Happening]:
        """Lets updates arrive, and dispatches a client after each, until the end.

        step: does a server step at a virtual time with what has arrived, yields what happens, and returns whether the
        timeline continues.
        """
        flights, roster, picks, delay, delays, size, end = self
        numbers, had, away, new = flights.numbers, flights.had, roster.away, tuple.__new__
        flying = sorted((of.arrives, of.serial, of) for of in flights.flying.values())
        flights.flying.popitem()  # whenever a step comes, one client has arrived and is not replaced yet
        serial, version, arrived = flights.serial, 0, list[Dispatched]()
        for place in picks.below(roster.size + 1, serial):
            now, _, back = flying[0]
            if now > end:
                break
            arrived.append(back)
            if len(arrived) == size:
                flights.follow(serial, version)
                goes_on = yield from step(now, arrived)
                version, arrived = version + 1, []
                if not goes_on:
                    heappop(flying)
                    break
            if away is None:
                roster.move(back.client, idle=True)
                client = roster.at(place)
                roster.move(client, idle=False)
            else:
                del away[bisect_left(away, back.client)]
                client = place
                while client != (further := place + bisect_right(away, client)):
                    client = further
                insort(away, client)
            number = numbers[client]
            numbers[client] = number + 1
            arrives = now + duration_of(delay, delays, client, number, None)
            of = (serial, client, number, version, version, now, arrives, True, 1.0, had[client])
            heapreplace(flying, (arrives, serial, new(Dispatched, of)))  # sooner made than by its class
            serial += 1
        flights.flying = {serial: of for _, serial, of in flying}
        flights.follow(serial, version)
        flights.waiting = [(of.serial, of, float(version - of.version)) for of in arrived]
