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
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raysim.parts.rng import Stream
from raysim.terms import Arrival, ModelKey, Moment, Round, Trigger
from raysim.world.clock import Clock, Horizon
from raysim.world.delay import Cost, duration_of
from raysim.world.picker import PolicyPicker, new_picker
from raysim.world.roster import Tiers
from raysim.world.server_happening import Closed, Dispatched, Ended, Happening, Started, Stepped
from raysim.world.world import World

_CLOSE, _OPEN, _ARRIVE, _LAST = range(4)  # priorities; the last one is of dispatches at given times


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
        self.in_flight = 0
        self._used = 0  # updates that steps have used
        self._over = False  # whether the round that was closed last is the last one
        self._looks = 0  # evaluations by virtual time so far
        self.length = world.round_length
        self._has_rounds, by_rounds = world.has_rounds, world.has_rounds and isinstance(trigger, Round)
        self._staleness_in_rounds = world.staleness == "rounds" or (world.staleness is None and by_rounds)
        self._steps_after = None if isinstance(trigger, Round) else trigger.size  # arrivals; None: when a round closes
        self._discards = isinstance(trigger, Round) and trigger.late == "discard" and self._has_rounds
        self.live: Counter[int] = Counter()  # by version: number of later updates that start from it
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
        self._fates = world.script.fates if world.script else None
        self._steady: PolicyPicker | None = None  # see `_replacements`
        if isinstance(self._picker, PolicyPicker) and self._picker.steady and not self._has_rounds:
            given = (cost, measured, loss, level, horizon.every_time)
            self._steady = self._picker if given == (None,) * 5 and self._drop == 0 else None
        self._look_pending = False  # whether an opening is scheduled for when others may be available
        self._numbers = [0] * len(samples)
        self._had: list[int | None] = [None] * len(samples)  # by client: as `Dispatched.had`
        self._serial = 0
        self._waiting: list[tuple[int, Dispatched, Arrival]] = []  # arrived, not yet in a step; serials come first
        self._flying: dict[int, Dispatched] = {}  # by serial

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
                yield from self._happened
                self._happened = []
            if event == _OPEN and self._has_rounds:
                self._schedule_close()
            if self._steady is not None and self.in_flight == self.world.dispatch.concurrency:
                yield from self._replacements(self._steady)
            if self.version >= self.horizon.versions and not self._over:
                self._over = True
                yield self._within(self._clock.now, "epsilon", "its epsilon was spent")
        if not self._over and len(self._clock):  # time is up
            yield from self._evaluations(end)
            self._clock.pass_to(end)
            yield self._within(end, "virtual_time", "its time was up")
        elif not self._over:  # nobody is in flight, and nobody ever will be
            yield self._within(self._clock.now, "clients", self._picker.over)
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
        for client in self._picker.pick(now, self.round, self.in_flight, self._serial):
            dispatched = self._dispatch(client)
            if self._follows and dispatched.reports:
                self._happened.append(Started(dispatched, self.version, self.round, now))
        if self._has_rounds or self._look_pending:
            return
        if (look := self._picker.next_look(now, self.in_flight)) is not None:  # before anybody arrives
            self._look_pending = True
            self._clock.schedule(look, _LAST if self._picker.timed else _OPEN, _OPEN)

    def _schedule_close(self) -> None:
        """Schedules the end of a round that was opened, once training that depends on it has begun."""
        if self.length is not None:
            self._clock.schedule((self.round + 1) * self.length, _CLOSE, _CLOSE)
        else:  # the round ends with an arrival
            for dispatched in list(self._flying.values()):
                if dispatched.arrives == math.inf:
                    self._ask(dispatched)
            self._clock.schedule(self._end_of_round(), _ARRIVE, _CLOSE)

    def _end_of_round(self) -> float:
        """Returns when a round without a fixed length ends: with its last arrival, or as soon as enough clients have
        reported. If it picked nobody, it ends with the next arrival of an earlier round, or at once."""
        now, wanted = self._clock.now, self.world.dispatch.reports
        picked = [dispatched for dispatched in self._flying.values() if dispatched.round == self.round]
        reported = sorted(dispatched.arrives for dispatched in picked if dispatched.reports)
        if wanted is not None and len(reported) >= wanted:
            return reported[wanted - 1]
        if picked:
            return max(dispatched.arrives for dispatched in picked)
        late = [dispatched.arrives for dispatched in self._flying.values()]
        return min(late, default=self._picker.next_change(now) or now)

    def _close(self) -> None:
        if isinstance(self.trigger, Round) and (self._waiting or self.trigger.empty):
            self._step(self._waiting)
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
        serial, number, now = self._serial, self._numbers[client], self._clock.now
        level = self._level(client, number) if self._level else 1.0
        soonest, reports = self._fate(client, number, level)
        arrives = math.inf if reports and self._measured is not None else soonest
        had = self._had[client]
        dispatched = Dispatched(serial, client, number, self.round, self.version, now, arrives, reports, level, had)
        self._serial = serial + 1
        self._numbers[client] = number + 1
        self._picker.roster.move(client, idle=False)
        if self._tiers is not None:
            self._tiers.leaves(client)
        self.in_flight += 1
        self._flying[serial] = dispatched
        if self._fates is None or soonest < math.inf:  # else it arrives after the end of the run that is replayed
            self._clock.schedule(soonest, _ARRIVE, dispatched)
        if self._can_matter(dispatched):
            self.live[self.version] += 1
        return dispatched

    def _replacements(self, picker: PolicyPicker) -> Iterator[Happening]:
        """Lets updates arrive, and dispatches a client after each, until the end, in a third of the time of `_arrive`.

        It is for worlds in which as many clients as are wanted are in flight, all others are there, and nothing but
        delays is drawn, so that most of a large timeline passes here.
        """
        clock, end, flying, numbers, live = self._clock, self.horizon.time, self._flying, self._numbers, self.live
        while isinstance(back := clock.next_until(end), Dispatched):
            version, gone, client = self.version, back.serial, back.client
            staleness = float(version - back.version)
            arrival = Arrival(client, gone, back.round, back.version, staleness, self.samples[client])
            self._waiting.append((gone, back, arrival))
            del flying[gone]
            if len(self._waiting) == self._steps_after:
                self.in_flight -= 1
                self._step(self._waiting)
                self._happened.append(self._closed())
                yield from self._happened
                self._happened = []
                version = self.round = self.version
                if self._over or self.version >= self.horizon.versions:
                    clock.pop()
                    picker.roster.move(client, idle=True)
                    return
                self.in_flight += 1
            serial = self._serial
            client = picker.replace(client, serial)
            number, now = numbers[client], clock.now
            arrives = now + duration_of(self._delay, self._delays, client, number, None)
            new = Dispatched(serial, client, number, version, version, now, arrives, True, 1.0, self._had[client])
            numbers[client] = number + 1
            self._serial = serial + 1
            flying[serial] = new
            live[version] += 1
            clock.replace(arrives, _ARRIVE, new)

    def _fate(self, client: int, number: int, level: ModelKey) -> tuple[float, bool]:
        """Returns when a dispatch made now can arrive at the soonest, and whether it reports."""
        if self._fates is not None:
            return float(self._fates.arrives[self._serial]), bool(self._fates.reports[self._serial])
        reports, cost = self._drop == 0 or bool(self._drops(client, number).random() >= self._drop), None
        if self._cost is not None:
            moment = Moment(self.round, self.version, self._clock.now)
            cost = self._cost(client, level, self._had[client], moment)
            if reports and self._measured is not None:
                cost = cost._replace(flops=0.0, samples=0.0)  # an update cannot arrive sooner than without training
        return self._clock.now + duration_of(self._delay, self._delays, client, number, cost), reports

    def _ask(self, dispatched: Dispatched) -> None:
        """Schedules the arrival of an update; waits for its training, on which its arrival depends."""
        if self._measured is None or self._flying[dispatched.serial].arrives < math.inf:  # it was asked before
            return
        cost = self._measured(dispatched)
        duration = duration_of(self._delay, self._delays, dispatched.client, dispatched.number, cost)
        known = dispatched._replace(arrives=dispatched.time + duration)
        self._flying[known.serial] = known
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
        self.in_flight -= 1
        del self._flying[dispatched.serial]
        self._picker.roster.move(client, idle=reports or not self.world.dropout.permanent)
        staleness = self._staleness(dispatched)
        if self._loss is not None and reports:
            self._picker.hear(dispatched, self._loss(dispatched), staleness)
        if not reports or (self._discards and dispatched.round < self.round):
            self._ended(dispatched, "discarded" if reports else "dropped", staleness)
        else:
            tier, samples = 0 if self._tiers is None else int(self._tiers.of[client]), self.samples[client]
            serial, round, version, level = dispatched.serial, dispatched.round, dispatched.version, dispatched.level
            width, architecture = (1.0, level) if isinstance(level, str) else (level, None)
            arrival = Arrival(client, serial, round, version, staleness, samples, tier, width, architecture)
            self._waiting.append((serial, dispatched, arrival))
            if len(self._waiting) == self._steps_after:
                self._step(self._waiting)
        if self._tiers is not None and self._tiers.returns(client):
            self._close_tier(self._tiers.of[client])
        if not self._has_rounds:
            if self.version > self.round:  # a server step counts as a round
                self._happened.append(self._closed())
                self.round = self.version
            if not self._over and not self._picker.timed:  # the client that arrived is replaced
                self._open()

    def _close_tier(self, tier: int) -> None:
        """Ends a tier's round, in which all that it had picked are back."""
        arrived = [waiting for waiting in self._waiting if waiting[2].tier == tier]
        if isinstance(self.trigger, Round) and (arrived or self.trigger.empty):
            self._step(arrived)

    # --- steps and ends -----------------------------------------------------------------------------------------------

    def _staleness(self, dispatched: Dispatched) -> float:
        if self._staleness_in_rounds:
            return float(self.round - dispatched.round)
        return float(self.version - dispatched.version)

    def _step(self, arrived: list[tuple[int, Dispatched, Arrival]]) -> None:
        """Does a server step with some of those that wait."""
        serials, members, arrivals = zip(*sorted(arrived), strict=True) if arrived else ((), (), ())
        gone = set(serials)
        self._waiting = [one for one in self._waiting if one[0] not in gone]
        self.version += 1
        self._used += len(members)
        for dispatched in members:
            self._had[dispatched.client] = dispatched.version
        for version, number in Counter(dispatched.version for dispatched in members).items():
            self._release(version, number)
        stepped = Stepped(self.version, self.round, self._clock.now, members, arrivals, self.in_flight)
        if self._on_step is not None:
            self._on_step(stepped)
        self._happened.append(stepped)

    def _ended(
        self, dispatched: Dispatched, status: Literal["discarded", "dropped", "unfinished"], staleness: float
    ) -> None:
        """Ends a dispatch whose update no step uses."""
        if self._can_matter(dispatched):
            self._release(dispatched.version)
        ended = Ended(dispatched, status, self.round, self._clock.now, self.version, staleness)
        self._happened.append(ended)

    def _release(self, version: int, updates: int = 1) -> None:
        """Lets go of the version from which updates start that have ended."""
        self.live[version] -= updates
        if self.live[version] == 0:
            del self.live[version]

    def _unfinished(self) -> Iterator[Happening]:
        """Ends what is in the buffer, with its staleness at its arrival, and what is in flight."""
        left = [(dispatched, arrival.staleness) for _, dispatched, arrival in self._waiting]
        left += [(dispatched, self._staleness(dispatched)) for dispatched in self._flying.values()]
        for dispatched, staleness in sorted(left):
            self._ended(dispatched, "unfinished", staleness)
        yield from self._happened
