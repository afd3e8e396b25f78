"""The timeline of a run with a server: which clients are dispatched, arrive, are used, discarded or lost, and when.

It is a pure function of the scenario and handles no tensors. Time comes from the world's delays, so the whole timeline
is known before anything is trained, and the engine may train at any moment, in any order, on any number of workers. If
delays depend on the work that clients really do, a client's training starts with its dispatch, and the timeline waits
for its end only when its update could arrive. If the policy needs losses, it waits when the update arrives.

Order at equal times: a round closes, the next one opens, then updates arrive, in order of dispatch. An update that
takes no time arrives in the round of its dispatch. Where clients are picked by tiers, each tier has rounds of its own,
and the number of rounds is that of server steps, as wherever the world has no rounds.
"""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raysim.parts.rng import Stream
from raysim.terms import Arrival, ModelKey, Moment, Round, Trigger
from raysim.world.clock import Clock, Horizon
from raysim.world.delay import Cost, duration_of
from raysim.world.picker import PolicyPicker, new_picker
from raysim.world.roster import Tiers
from raysim.world.server_happening import Closed, Dispatched, Ended, Flights, Happening, Started, Stepped, Waiting
from raysim.world.steady import Steady
from raysim.world.world import World

_CLOSE, _OPEN, _ARRIVE = range(3)  # priorities


class ServerTimeline:
    """What happens in a run: iterate over it to get all happenings, in order.

    samples: the number of samples that each client trains on, (clients,); a client with none is never picked. horizon:
    when it ends, and when models are evaluated. cost: returns the cost of an update, if the delay needs it, for a
    client, its level, the version that it had received (`Dispatched.had`) and the moment of its dispatch. measured:
    waits for the training of a dispatch and returns the cost of what was really done, if delays depend on that. labels:
    how many samples of each label clients have, if the policy needs to know, (clients, labels). loss: waits for the
    training of a dispatch and returns its loss, if the policy needs to know that. on_step: called with each server
    step. level: returns the level of a client's dispatch; None: all clients train the server's model.
    """

    def __init__(
        self,
        world: World,
        trigger: Trigger,
        samples: NDArray[np.int64],
        horizon: Horizon,
        seed: int,
        cost: Callable[[int, ModelKey, int | None, Moment], Cost] | None = None,
        measured: Callable[[Dispatched], Cost] | None = None,
        labels: NDArray[np.int64] | None = None,
        loss: Callable[[Dispatched], float] | None = None,
        on_step: Callable[[Stepped], None] | None = None,
        level: Callable[[int, int], ModelKey] | None = None,
    ) -> None:
        self.world, self.trigger, self.horizon = world, trigger, horizon
        self.samples = samples.tolist()
        self.round = self.version = 0
        self._used = 0  # updates that steps have used
        self._over = False  # whether the round that was closed last is the last one
        self._looks = 0  # evaluations by virtual time so far
        self.length = world.round_length
        self._has_rounds, by_rounds = world.has_rounds, world.has_rounds and isinstance(trigger, Round)
        self._staleness_in_rounds = world.staleness == "rounds" or (world.staleness is None and by_rounds)
        self._steps_after = None if isinstance(trigger, Round) else trigger.size  # arrivals; None: when a round closes
        self._discards = isinstance(trigger, Round) and trigger.late == "discard" and self._has_rounds
        self._flights = Flights(len(samples))
        self.live = self._flights.live  # by version: number of later updates that start from it
        self._cost, self._measured, self._loss, self._on_step = cost, measured, loss, on_step
        self._level = level
        self._follows = measured is not None or loss is not None  # whether training starts with the dispatch
        self._clock: Clock[Dispatched | int] = Clock()  # updates that arrive, _OPEN and _CLOSE
        self._happened: list[Happening] = []  # by the event that is carried out
        self._delays, self._drops = Stream(seed, "delay"), Stream(seed, "dropout")
        self._delay, self._drop = world.delay, world.dropout.probability
        tiers, first = world.dispatch.tiers, None
        if cost is not None:
            first = lambda client: cost(client, level(client, 0) if level else 1.0, 0, Moment())  # noqa: E731
        self._tiers = Tiers(tiers, samples, world.delay, self._delays, first) if tiers else None
        self._picker = new_picker(world, samples, seed, labels, self._tiers)
        self._steady: Steady | None = None
        plain = (cost, measured, loss, level, horizon.every_time) == (None,) * 5 and self._drop == 0
        if plain and isinstance(self._picker, PolicyPicker) and self._picker.steady and not self._has_rounds:
            given = self._flights, self._picker.roster, self._picker.draws, self._delay, self._delays
            self._steady = Steady(*given, self._steps_after, horizon.time)
        self._look_pending = False  # whether an opening is scheduled for when others may be available

    @property
    def in_flight(self) -> int:
        """How many clients are in flight."""
        return len(self._flights.flying)

    def __iter__(self) -> Iterator[Happening]:
        self._clock.schedule(0.0, _OPEN, _OPEN)
        end = self.horizon.time
        while not self._over and len(self._clock) and self._clock.next_time <= end:
            event = self._clock.pop()
            if self.horizon.every_time:
                yield from self._evaluations(self._clock.now)
            if isinstance(event, Dispatched):
                self._arrive(event)
            elif event == _CLOSE:
                self._close()
            else:
                self._look_pending = False
                self._open()
            if self._happened:
                yield from self._yielded()
            if event == _OPEN and self._has_rounds:
                self._schedule_close()
            if steady := self._steady if self.in_flight == self.world.dispatch.concurrency else None:
                yield from steady.replacements(self._step_at)
            if self.version >= self.horizon.versions and not self._over:
                self._over = True
                yield self._within(self._clock.now, "epsilon", "its epsilon was spent")
            if steady:
                break
        if not self._over and len(self._clock):  # time is up
            yield from self._evaluations(end)
            self._clock.pass_to(end)
            yield self._within(end, "virtual_time", "its time was up")
        elif not self._over:  # nobody is in flight, and nobody ever will be
            yield self._within(self._clock.now, "clients", "no client is left to pick")
        yield from self._unfinished()

    def _within(self, time: float, ends: str | None = None, early: str | None = None) -> Closed:
        """Returns an evaluation within a round, which may end the run."""
        return Closed(self.round, time, self.version, self.in_flight, True, ends, early, whole=False)

    def _evaluations(self, before: float) -> Iterator[Closed]:
        """Yields the evaluations that are due before a virtual time."""
        while (time := self.horizon.due(self._looks + 1)) < before:
            self._looks += 1
            yield self._within(time)

    # --- rounds -------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Opens a round: picks clients. Without rounds, only picks clients."""
        now = self._clock.now
        for client in self._picker.pick(now, self.round, self.in_flight, self._flights.serial):
            dispatched = self._dispatch(client)
            if self._follows and dispatched.reports:
                self._happened.append(Started(dispatched, self.version, self.round, now))
        if self._has_rounds or self._look_pending:
            return
        if (look := self._picker.next_look(now, self.in_flight)) is not None:  # before anybody arrives
            self._look_pending = True
            self._clock.schedule(look, _OPEN, _OPEN)

    def _schedule_close(self) -> None:
        """Schedules the end of a round that was opened, once training that depends on it has begun."""
        if self.length is not None:
            self._clock.schedule((self.round + 1) * self.length, _CLOSE, _CLOSE)
        else:  # the round ends with an arrival
            for dispatched in list(self._flights.flying.values()):
                if dispatched.arrives == math.inf:
                    self._ask(dispatched)
            if (end := self._flights.end_of_round(self.round, self.world.dispatch.reports)) is None:
                end = self._picker.next_change(self._clock.now) or self._clock.now
            self._clock.schedule(end, _ARRIVE, _CLOSE)

    def _close(self) -> None:
        if isinstance(self.trigger, Round) and (self._flights.waiting or self.trigger.empty):
            self._step(self._flights.waiting)
        self._happened.append(self._closed())
        self.round += 1
        if not self._over:
            self._clock.schedule(self._clock.now, _OPEN, _OPEN)

    def _closed(self) -> Closed:
        """Returns the end of the current round, or server step."""
        over, now = self.round + 1, self._clock.now
        ends = self.horizon.ends(over, now, self._used, self.version)
        self._over = ends is not None
        evaluated = self._over or self.horizon.is_evaluated(over)
        return Closed(self.round, now, self.version, self.in_flight, evaluated, ends)

    # --- clients ------------------------------------------------------------------------------------------------------

    def _dispatch(self, client: int) -> Dispatched:
        flights, now = self._flights, self._clock.now
        number, had = flights.numbers[client], flights.had[client]
        level = self._level(client, number) if self._level else 1.0
        soonest, reports = self._fate(client, number, level)
        arrives = math.inf if reports and self._measured is not None else soonest
        serial, round, version = flights.serial, self.round, self.version
        dispatched = Dispatched(serial, client, number, round, version, now, arrives, reports, level, had)
        flights.add(dispatched, self._can_matter(dispatched))
        self._picker.roster.move(client, idle=False)
        if self._tiers is not None:
            self._tiers.leaves(client)
        self._clock.schedule(soonest, _ARRIVE, dispatched)
        return dispatched

    def _fate(self, client: int, number: int, level: ModelKey) -> tuple[float, bool]:
        """Returns when a dispatch made now can arrive at the soonest, and whether it reports."""
        reports, cost = self._drop == 0 or bool(self._drops(client, number).random() >= self._drop), None
        if self._cost is not None:
            moment = Moment(self.round, self.version, self._clock.now)
            cost = self._cost(client, level, self._flights.had[client], moment)
            if reports and self._measured is not None:
                cost = cost._replace(flops=0.0, samples=0.0)  # an update cannot arrive sooner than without training
        return self._clock.now + duration_of(self._delay, self._delays, client, number, cost), reports

    def _ask(self, dispatched: Dispatched) -> None:
        """Schedules the arrival of an update; waits for its training, on which its arrival depends."""
        if self._measured is None or self._flights.flying[dispatched.serial].arrives < math.inf:  # it was asked before
            return
        cost = self._measured(dispatched)
        duration = duration_of(self._delay, self._delays, dispatched.client, dispatched.number, cost)
        known = dispatched._replace(arrives=dispatched.time + duration)
        self._flights.flying[known.serial] = known
        self._clock.schedule(known.arrives, _ARRIVE, known)

    def _can_matter(self, dispatched: Dispatched) -> bool:
        """Whether a step may use the dispatch's update, so that it may still have to be trained.

        It cannot if the update is lost or certain to be late. It may if it arrives after the end, because a checkpoint
        holds all that a longer run would need. It may if its training has started with the dispatch, because a run that
        is resumed starts it again.
        """
        if not self._discards or not dispatched.reports or self._follows or self.length is None:
            return dispatched.reports
        return dispatched.arrives < (dispatched.round + 1) * self.length

    def _arrive(self, dispatched: Dispatched) -> None:
        if dispatched.arrives == math.inf:  # it may arrive now, if training took no time
            return self._ask(dispatched)
        client, reports = dispatched.client, dispatched.reports
        del self._flights.flying[dispatched.serial]
        self._picker.roster.move(client, idle=reports or not self.world.dropout.permanent)
        staleness = self._staleness(dispatched)
        if self._loss is not None and reports:
            self._picker.hear(dispatched, self._loss(dispatched), staleness)
        if not reports or (self._discards and dispatched.round < self.round):
            self._ended(dispatched, "discarded" if reports else "dropped", staleness)
        else:
            self._flights.waiting.append((dispatched.serial, dispatched, staleness))
            if len(self._flights.waiting) == self._steps_after:
                self._step(self._flights.waiting)
        if self._tiers is not None and self._tiers.returns(client):
            self._close_tier(self._tiers.of == self._tiers.of[client])
        if not self._has_rounds:
            if self.version > self.round:  # a server step counts as a round
                self._happened.append(self._closed())
                self.round = self.version
            if not self._over:  # the client that arrived is replaced
                self._open()

    def _close_tier(self, members: NDArray[np.bool_]) -> None:
        """Ends a tier's round, in which all that it had picked are back. members: who is in it, (clients,)."""
        arrived = [waiting for waiting in self._flights.waiting if members[waiting[1].client]]
        if isinstance(self.trigger, Round) and (arrived or self.trigger.empty):
            self._step(arrived)

    # --- steps and ends -----------------------------------------------------------------------------------------------

    def _staleness(self, dispatched: Dispatched) -> float:
        if self._staleness_in_rounds:
            return float(self.round - dispatched.round)
        return float(self.version - dispatched.version)

    def _step(self, arrived: list[Waiting]) -> None:
        """Does a server step with some of those that wait."""
        self._step_with(*self._flights.use(arrived))

    def _step_with(self, members: tuple[Dispatched, ...], staleness: Sequence[float]) -> None:
        """Does a server step with members in order, whose updates have this staleness."""
        arrivals = tuple(self._arrivals(members, staleness))
        for client, _, _, version, *_ in arrivals:
            self._flights.had[client] = version
        self.version += 1
        self._used += len(members)
        stepped = Stepped(self.version, self.round, self._clock.now, members, arrivals, self.in_flight)
        if self._on_step is not None:
            self._on_step(stepped)
        self._happened.append(stepped)

    def _arrivals(self, members: Sequence[Dispatched], staleness: Iterable[float]) -> Iterator[Arrival]:
        """Returns the members of a step as algorithms see them."""
        if not members:
            return iter(())
        serials, clients, _, rounds, versions, _, _, _, levels, _ = zip(*members, strict=True)
        samples = map(self.samples.__getitem__, clients)
        tiers = repeat(0) if self._tiers is None else self._tiers.of[[*clients]].tolist()
        widths = [1.0 if isinstance(level, str) else level for level in levels]
        names = [level if isinstance(level, str) else None for level in levels]
        return map(Arrival, clients, serials, rounds, versions, staleness, samples, tiers, widths, names)

    def _step_at(self, now: float, arrived: list[Dispatched]) -> Generator[Happening, None, bool]:
        """Does a server step, which counts as a round, as `Steady` asks."""
        self._clock.pass_to(now)
        arrived.sort(key=itemgetter(0))  # by serial
        self._step_with(tuple(arrived), [float(self.version - of.version) for of in arrived])
        self._happened.append(self._closed())
        yield from self._yielded()
        self.round = self.version
        return not self._over and self.version < self.horizon.versions

    def _ended(
        self, dispatched: Dispatched, status: Literal["discarded", "dropped", "unfinished"], staleness: float
    ) -> None:
        """Ends a dispatch whose update no step uses."""
        ended = Ended(dispatched, status, self.round, self._clock.now, self.version, staleness)
        self._happened.append(ended)

    def _unfinished(self) -> Iterator[Happening]:
        """Ends what is in the buffer, with its staleness at its arrival, and what is in flight."""
        left = [(dispatched, staleness) for _, dispatched, staleness in self._flights.waiting]
        left += [(dispatched, self._staleness(dispatched)) for dispatched in self._flights.flying.values()]
        for dispatched, staleness in sorted(left):
            self._ended(dispatched, "unfinished", staleness)
        yield from self._yielded()

    def _yielded(self) -> Iterator[Happening]:
        """Yields what happened in an event. An update's version is let go of when it is yielded that the update is
        over, and not before: what is yielded earlier may make its reader forget all versions that no update needs."""
        happened, self._happened = self._happened, []
        for one in happened:
            if isinstance(one, Stepped):
                self._flights.release(one.members)
            elif isinstance(one, Ended) and self._can_matter(one.dispatched):
                self._flights.release([one.dispatched])
            yield one
