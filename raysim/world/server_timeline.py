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
from raysim.terms import Arrival, Moment, Round, Trigger
from raysim.world.clock import Clock, Horizon
from raysim.world.delay import Cost, duration_of
from raysim.world.picker import new_picker
from raysim.world.roster import Tiers
from raysim.world.server_happening import Closed, Dispatched, Ended, Happening, Started, Stepped
from raysim.world.world import World

_CLOSE, _OPEN, _ARRIVE = range(3)
_ASK = 3  # the kind of event that asks for the cost of an update that may arrive now; it has the priority of an arrival
_LAST = 3  # the priority of dispatches at given times, which follow arrivals


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
        cost: Callable[[int, float, int | None, Moment], Cost] | None = None,
        measured: Callable[[Dispatched], Cost] | None = None,
        labels: NDArray[np.int64] | None = None,
        loss: Callable[[Dispatched], float] | None = None,
        on_step: Callable[[Stepped], None] | None = None,
        level: Callable[[int, int], float] | None = None,
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
        self._level = level or (lambda client, number: 1.0)
        self._follows = measured is not None or loss is not None  # whether training starts with the dispatch
        self._clock: Clock[tuple[int, Dispatched | None]] = Clock()
        self._delays, self._drops = Stream(seed, "delay"), Stream(seed, "dropout")
        self._delay, self._drop = world.delay, world.dropout.probability
        tiers, first = world.dispatch.tiers, None
        if cost is not None:
            first = lambda client: cost(client, self._level(client, 0), 0, Moment())  # noqa: E731
        self._tiers = Tiers(tiers, samples, world.delay, self._delays, first) if tiers else None
        self._picker = new_picker(world, samples, seed, labels, self._tiers)
        self._fates = world.script.fates if world.script else None
        self._look_pending = False  # whether an opening is scheduled for when others may be available
        self._numbers = [0] * len(samples)
        self._serial = 0
        self._had: dict[int, int] = {}  # by client: version that its last update that a step used started from
        self._waiting: list[tuple[Dispatched, Arrival]] = []  # arrived, not yet in a step
        self._flying: dict[int, Dispatched] = {}  # by serial

    def __iter__(self) -> Iterator[Happening]:
        self._clock.schedule(0.0, _OPEN, (_OPEN, None))
        end = self.horizon.time
        while not self._over and len(self._clock) and self._clock.next_time <= end:
            if self.horizon.every_time:
                yield from self._evaluations(self._clock.next_time)
            kind, dispatched = self._clock.pop()
            if kind == _OPEN:
                self._look_pending = False
                yield from self._open()
            elif kind == _CLOSE:
                yield from self._close()
            elif kind == _ASK and dispatched is not None:
                self._ask(dispatched)
            elif dispatched is not None:
                yield from self._arrive(dispatched)
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

    def _open(self) -> Iterator[Happening]:
        """Opens a round: picks clients, and schedules its end. Without rounds, only picks clients."""
        now = self._clock.now
        for client in self._picker.pick(now, self.round, self.in_flight, self._serial):
            dispatched = self._dispatch(client)
            if self._follows and dispatched.reports:
                yield Started(dispatched, self.version, self.round, now)
        if not self._has_rounds:
            self._look_again()
        elif self.length is not None:
            self._clock.schedule((self.round + 1) * self.length, _CLOSE, (_CLOSE, None))
        else:  # the round ends with an arrival
            for dispatched in list(self._flying.values()):
                if dispatched.arrives == math.inf:
                    self._ask(dispatched)
            self._clock.schedule(self._end_of_round(), _ARRIVE, (_CLOSE, None))

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

    def _look_again(self) -> None:
        """Without rounds: schedules another pick, if it may be time for one before anybody arrives."""
        if not self._look_pending and (look := self._picker.next_look(self._clock.now, self.in_flight)) is not None:
            self._look_pending = True
            self._clock.schedule(look, _LAST if self._picker.timed else _OPEN, (_OPEN, None))

    def _close(self) -> Iterator[Happening]:
        if isinstance(self.trigger, Round) and (self._waiting or self.trigger.empty):
            yield self._step(self._waiting)
        yield self._closed()
        self.round += 1
        if not self._over:
            self._clock.schedule(self._clock.now, _OPEN, (_OPEN, None))

    def _closed(self) -> Closed:
        """Returns the end of the current round, or server step."""
        over, now = self.round + 1, self._clock.now
        ends = self.horizon.ends(over, now, self._used, self.version)
        self._over = ends is not None
        evaluated = self._over or self.horizon.is_evaluated(over)
        return Closed(self.round, now, self.version, self.in_flight, evaluated, ends)

    # --- clients ------------------------------------------------------------------------------------------------------

    def _dispatch(self, client: int) -> Dispatched:
        number, now = self._numbers[client], self._clock.now
        level = self._level(client, number)
        soonest, reports = self._fate(client, number, level)
        ask = self._measured is not None and reports
        arrives = math.inf if ask else soonest
        had = self._had.get(client)
        of = (self._serial, client, number, self.round, self.version)
        dispatched = Dispatched(*of, now, arrives, reports, level, had)
        self._serial += 1
        self._numbers[client] += 1
        self._picker.roster.move(client, idle=False)
        if self._tiers is not None:
            self._tiers.leaves(client)
        self.in_flight += 1
        self._flying[dispatched.serial] = dispatched
        if self._fates is None or soonest < math.inf:  # else it arrives after the end of the run that is replayed
            self._clock.schedule(soonest, _ARRIVE, (_ASK if ask else _ARRIVE, dispatched))
        if self._can_matter(dispatched):
            self.live[dispatched.version] += 1
        return dispatched

    def _fate(self, client: int, number: int, level: float) -> tuple[float, bool]:
        """Returns when a dispatch made now can arrive at the soonest, and whether it reports."""
        if self._fates is not None:
            return float(self._fates.arrives[self._serial]), bool(self._fates.reports[self._serial])
        reports = self._drop == 0 or bool(self._drops(client, number).random() >= self._drop)
        moment = Moment(self.round, self.version, self._clock.now)
        cost = self._cost(client, level, self._had.get(client), moment) if self._cost else None
        if cost and reports and self._measured is not None:
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
        self._clock.schedule(known.arrives, _ARRIVE, (_ARRIVE, known))

    def _can_matter(self, dispatched: Dispatched) -> bool:
        """Whether a step may use the dispatch's update, so that it may still have to be trained.

        It cannot if the update is lost or certain to be late. It may if it arrives after the end, because a checkpoint
        holds all that a longer run would need. It may if its training has started with the dispatch, because a run that
        is resumed starts it again.
        """
        if not self._discards or not dispatched.reports or self._follows or self.length is None:
            return dispatched.reports
        return dispatched.arrives < (dispatched.round + 1) * self.length

    def _arrive(self, dispatched: Dispatched) -> Iterator[Happening]:
        self.in_flight -= 1
        del self._flying[dispatched.serial]
        idle = dispatched.reports or not self.world.dropout.permanent
        self._picker.roster.move(dispatched.client, idle=idle)
        if self._loss is not None and dispatched.reports:
            self._picker.hear(dispatched, self._loss(dispatched), self._staleness(dispatched))
        if not dispatched.reports or (self._discards and dispatched.round < self.round):
            status: Literal["discarded", "dropped"] = "discarded" if dispatched.reports else "dropped"
            yield self._ended(dispatched, status, self._staleness(dispatched))
        else:
            self._waiting.append((dispatched, self._arrival(dispatched)))
            if len(self._waiting) == self._steps_after:
                yield self._step(self._waiting)
        if self._tiers is not None and self._tiers.returns(dispatched.client):
            yield from self._close_tier(self._tiers.of[dispatched.client])
        if not self._has_rounds:
            if self.version > self.round:  # a server step counts as a round
                yield self._closed()
                self.round = self.version
            if not self._over and not self._picker.timed:  # the client that arrived is replaced
                yield from self._open()

    def _close_tier(self, tier: int) -> Iterator[Happening]:
        """Ends a tier's round, in which all that it had picked are back."""
        arrived = [pair for pair in self._waiting if pair[1].tier == tier]
        if isinstance(self.trigger, Round) and (arrived or self.trigger.empty):
            yield self._step(arrived)

    # --- steps and ends -----------------------------------------------------------------------------------------------

    def _staleness(self, dispatched: Dispatched) -> float:
        if self._staleness_in_rounds:
            return float(self.round - dispatched.round)
        return float(self.version - dispatched.version)

    def _arrival(self, d: Dispatched) -> Arrival:
        tier = 0 if self._tiers is None else int(self._tiers.of[d.client])
        samples = self.samples[d.client]
        return Arrival(d.client, d.serial, d.round, d.version, self._staleness(d), samples, tier, d.level)

    def _step(self, arrived: list[tuple[Dispatched, Arrival]]) -> Stepped:
        """Does a server step with some of those that wait."""
        taken = sorted(arrived)  # by serial
        gone = set(taken)
        self._waiting = [pair for pair in self._waiting if pair not in gone]
        self.version += 1
        self._used += len(taken)
        self._had.update((dispatched.client, dispatched.version) for dispatched, _ in taken)
        for dispatched, _ in taken:
            if self._can_matter(dispatched):
                self._release(dispatched)
        members, arrivals = tuple(d for d, _ in taken), tuple(a for _, a in taken)
        stepped = Stepped(self.version, self.round, self._clock.now, members, arrivals, self.in_flight)
        if self._on_step is not None:
            self._on_step(stepped)
        return stepped

    def _ended(
        self, dispatched: Dispatched, status: Literal["discarded", "dropped", "unfinished"], staleness: float
    ) -> Ended:
        if self._can_matter(dispatched):
            self._release(dispatched)
        return Ended(dispatched, status, self.round, self._clock.now, self.version, staleness)

    def _release(self, dispatched: Dispatched) -> None:
        self.live[dispatched.version] -= 1
        if self.live[dispatched.version] == 0:
            del self.live[dispatched.version]

    def _unfinished(self) -> Iterator[Happening]:
        """Ends what is in the buffer, with its staleness at its arrival, and what is in flight."""
        left = [(dispatched, arrival.staleness) for dispatched, arrival in self._waiting]
        left += [(dispatched, self._staleness(dispatched)) for dispatched in self._flying.values()]
        for dispatched, staleness in sorted(left):
            yield self._ended(dispatched, "unfinished", staleness)
