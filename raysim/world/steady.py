"""A fast loop for timelines in which clients replace each other one by one."""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from raysim.parts.rng import Stream
from raysim.terms import Arrival
from raysim.world.clock import Clock
from raysim.world.delay import Delay, duration_of
from raysim.world.picker import PolicyPicker
from raysim.world.server_happening import Dispatched, Flights, Happening


class Steady(NamedTuple):
    """A timeline in which as many clients as are wanted are in flight, all others are there, and nothing but delays is
    drawn, so that most of a large one passes here, in a third of the time of the general loop."""

    clock: Clock[Dispatched | int]
    flights: Flights
    picker: PolicyPicker
    delay: Delay
    delays: Stream
    samples: list[int]  # by client
    size: int | None  # number of updates that a step waits for; None: no step comes
    end: float  # virtual time

    def replacements(
        self, version: int, priority: int, step: Callable[[], Generator[Happening, None, int | None]]
    ) -> Iterator[Happening]:
        """Lets updates arrive, and dispatches a client after each, until the end.

        version, priority: the server's version now, and the clock's priority of arrivals. step: does a server step with
        all that wait, yields what happens, and returns the new version; None if it was the last one.
        """
        clock, flights, picker, delay, delays, samples, size, end = self
        flying, numbers, had, live = flights.flying, flights.numbers, flights.had, flights.live
        while isinstance(back := clock.next_until(end), Dispatched):
            gone, client = back.serial, back.client
            staleness = float(version - back.version)
            arrival = Arrival(client, gone, back.round, back.version, staleness, samples[client])
            flights.waiting.append((gone, back, arrival))
            del flying[gone]
            if len(flights.waiting) == size:
                stepped = yield from step()
                if stepped is None:
                    clock.pop()
                    picker.roster.move(client, idle=True)
                    return
                version = stepped
            serial = flights.serial
            client = picker.replace(client, serial)
            number, now = numbers[client], clock.now
            arrives = now + duration_of(delay, delays, client, number, None)
            new = Dispatched(serial, client, number, version, version, now, arrives, True, 1.0, had[client])
            numbers[client] = number + 1
            flights.serial = serial + 1
            flying[serial] = new
            live[version] += 1
            clock.replace(arrives, priority, new)
