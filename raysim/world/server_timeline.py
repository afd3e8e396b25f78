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
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from raysim.terms import ModelKey, Moment, Round, Trigger
from raysim.world.clock import Clock, Horizon
from raysim.world.delay import Cost
from raysim.world.flights import CostOf, Flights, Waiting
from raysim.world.picker import Picker
from raysim.world.roster import Tiers
from raysim.world.server_happening import Closed, Dispatched, Ended, Happening, Started, Status, Stepped, arrivals_of
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
        cost: CostOf | None = None,
        measured: Callable[[Dispatched], Cost] | None = None,
        labels: NDArray[np.int64] | None = None,
        loss: Callable[[Dispatched], float] | None = None,
        on_step: Callable[[Stepped], None] | None = None,
        level: Callable[[int, int], ModelKey] | None = None,
    ) -> None:
        self.world, self.trigger, self.horizon = world, trigger, horizon
        self._samples: list[int] = samples.tolist()
        self.round = self.version = 0
        self._used = 0  # updates that steps have used
        self._over = False  # whether the round that was closed last is the last one
        self._looks = 0  # evaluations by virtual time so far
        self._length = world.round_length
        self._has_rounds, by_rounds = world.has_rounds, world.has_rounds and isinstance(trigger, Round)
        self._staleness_in_rounds = world.staleness == "rounds" or (world.staleness is None and by_rounds)
        self._steps_after = None if isinstance(trigger, Round) else trigger.size  # arrivals; None: when a round closes
        self._discards = isinstance(trigger, Round) and trigger.late == "discard" and self._has_rounds
        self._loss, self._on_step = loss, on_step
        self._follows = measured is not None or loss is not None  # whether training starts with the dispatch
        # A run that is resumed starts such training again, also that of updates that turn out to be late.
        length = self._length if self._discards and not self._follows else None
        self._flights = Flights(world, len(samples), seed, cost, measured, level, length)
        self.live = self._flights.live  # by version: number of later updates that start from it
        self._clock: Clock[Dispatched | int] = Clock()  # updates that arrive, _OPEN and _CLOSE
        self._happened: list[Happening] = []  # by the event that is carried out
        tiers = world.dispatch.tiers
        self._tiers = Tiers(tiers, samples, self._flights.first_delays(np.flatnonzero(samples))) if tiers else None
        self._picker = Picker(world, samples, seed, labels, self._tiers)
        other = cost or level or self._follows or self._has_rounds or horizon.every_time or world.dropout.probability
        self._steady = not other and self._picker.steady  # whether clients are only replaced, one by one
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
            steady = self._steady and self.in_flight == self.world.dispatch.concurrency
            if steady:
                yield from self._replacements()
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
        if self._length is not None:
            self._clock.schedule((self.round + 1) * self._length, _CLOSE, _CLOSE)
        else:  # the round ends with an arrival
            for dispatched in list(self._flights.flying.values()):
                if dispatched.arrives == math.inf:
                    self._ask(dispatched)
            if (end := self._flights.end_of_round(self.round, self.world.dispatch.reports)) is None:
                end = self._picker.next_change(self._clock.now) or self._clock.now
            self._clock.schedule(end, _ARRIVE, _CLOSE)

    def _close(self) -> None:
        self._step_after_round(self._flights.waiting)
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
        dispatched, soonest = self._flights.dispatch(client, Moment(self.round, self.version, self._clock.now))
        self._picker.roster.move(client, idle=False)
        if self._tiers is not None:
            self._tiers.leaves(client)
        self._clock.schedule(soonest, _ARRIVE, dispatched)
        return dispatched

    def _ask(self, dispatched: Dispatched) -> None:
        """Schedules the arrival of an update; waits for its training, on which its arrival depends."""
        if known := self._flights.ask(dispatched):
            self._clock.schedule(known.arrives, _ARRIVE, known)

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
                self._step_with(*self._flights.take(self._flights.waiting))
        if (tiers := self._tiers) is not None and tiers.returns(client):  # the tier's round is over
            tier = tiers.of[client]
            self._step_after_round([one for one in self._flights.waiting if tiers.of[one[1].client] == tier])
        if not self._has_rounds:
            if self.version > self.round:  # a server step counts as a round
                self._happened.append(self._closed())
                self.round = self.version
            if not self._over:  # the client that arrived is replaced
                self._open()

    # --- steps and ends -----------------------------------------------------------------------------------------------

    def _staleness(self, dispatched: Dispatched) -> float:
        if self._staleness_in_rounds:
            return float(self.round - dispatched.round)
        return float(self.version - dispatched.version)

    def _step_after_round(self, arrived: list[Waiting]) -> None:
        """Does a server step with some of those that wait, if one comes at the end of a round."""
        if isinstance(self.trigger, Round) and (arrived or self.trigger.empty):
            self._step_with(*self._flights.take(arrived))

    def _step_with(self, members: tuple[Dispatched, ...], staleness: Sequence[float]) -> None:
        """Does a server step with members in order, whose updates have this staleness."""
        arrivals = arrivals_of(members, staleness, self._samples, self._tiers.of if self._tiers else None)
        self._flights.use(members)
        self.version += 1
        self._used += len(members)
        stepped = Stepped(self.version, self.round, self._clock.now, members, arrivals, self.in_flight)
        if self._on_step is not None:
            self._on_step(stepped)
        self._happened.append(stepped)

    def _replacements(self) -> Iterator[Happening]:
        """Goes on to the end where updates arrive and other clients replace them, and each step counts as a round."""
        roster, draws, size, end = self._picker.roster, self._picker.draws, self._steps_after, self.horizon.time
        over = lambda: self._over or self.version >= self.horizon.versions  # noqa: E731
        for now, members in self._flights.replaced(roster, draws, size, end, over):
            self._clock.pass_to(now)
            self._step_with(members, [float(self.version - of.version) for of in members])
            self._happened.append(self._closed())
            yield from self._yielded()
            self.round = self.version

    def _ended(self, dispatched: Dispatched, status: Status, staleness: float) -> None:
        """Ends a dispatch whose update no step uses."""
        self._happened.append(Ended(dispatched, status, self.round, self._clock.now, self.version, staleness))

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
            elif isinstance(one, Ended) and self._flights.can_matter(one.dispatched):
                self._flights.release([one.dispatched])
            yield one
