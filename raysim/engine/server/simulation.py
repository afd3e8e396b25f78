"""A run with a server that has started: hands out jobs for what happens, and records what they return."""

import math
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from actors import Value, finished
from raysim.clients.capacity import Levels
from raysim.clients.group import Architectures
from raysim.engine.checkpoint import Checkpoint, skip
from raysim.engine.progress import Mark, Stopwatch
from raysim.engine.recorder import times
from raysim.engine.server.evaluation import PendingEvaluation
from raysim.engine.server.guarantee import one_sum, weigh
from raysim.engine.server.jobs import PendingStep, ServerJobs
from raysim.engine.server.recorder import ServerRecorder
from raysim.engine.simulation import Change, Committed, Final
from raysim.scenario import Scenario
from raysim.terms import Moment
from raysim.world.server_happening import Closed, Dispatched, Ended, Happening, Started, Stepped


class ServerSimulation:
    """A run with a server that has started."""

    def __init__(
        self, scenario: Scenario, jobs: ServerJobs, recorder: ServerRecorder, checkpoint: Checkpoint | None
    ) -> None:
        self.scenario, self.described = scenario, jobs.described
        described = self.described
        self._jobs, self._recorder, self._course = jobs, recorder, jobs.course
        recorder.follows(jobs.course)
        self._evaluated: int | None = None  # version of the last evaluation that was written
        self._end: Closed | None = None  # the last end of a round, or evaluation, that was written
        self._written = 0  # happenings that were written
        self._made = Moment()  # when the last version that was written was made
        self._good: tuple[Value[Any], dict[str, Any]] | None = None  # the last model that was evaluated as finite
        recorder.budget.require_countable(described.forward_flops)
        self._ahead: deque[int] = deque()  # for each happening that is not yet written: measurements before it
        self._measurements = 0  # those before the last happening that was written
        self._timeline = jobs.course.timeline(scenario.run.horizon, jobs.training)
        self._happenings = iter(self._timeline)
        if checkpoint:
            self.committed = jobs.recall(checkpoint)
            self._recall(checkpoint)
        else:
            self.committed = Committed(jobs.kept(None))
            recorder.partition(self.described.partition)
        self.stopwatch = Stopwatch.start(checkpoint.seconds if checkpoint else 0.0)

    def happenings(self) -> Iterator[Happening]:
        while (happening := next(self._happenings, None)) is not None:  # `end` gives others
            yield happening

    def end(self) -> None:
        assert self._end is not None  # it is the evaluation that ends the run
        self._ahead.clear()
        self._jobs.go_back(self.committed)
        horizon = self._end.last_of(self.scenario.run.horizon)
        self._timeline = self._course.timeline(horizon, self._jobs.training)
        self._happenings = iter(self._timeline)
        self._jobs.evaluations.made = self._made
        deque(islice(self._happenings, self._written), maxlen=0)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def memory(self) -> dict[str, Any]:
        # Without later measurements: how many there are depends on the workers, and a fork measures these anew.
        return {"evaluated": self._evaluated, "training": self._jobs.training.memory(self._measurements)}

    def _recall(self, checkpoint: Checkpoint) -> None:
        """Moves the timeline on to a checkpoint, and starts the training again that was under way then."""
        self._evaluated = checkpoint.memory["simulation"]["evaluated"]
        begun: dict[int, Dispatched] = {}  # by serial: dispatches whose training has started, and that have not ended
        account, population = self._recorder.account, self._course.population
        for happening in skip(self._happenings, checkpoint):
            match happening:
                case Started():
                    begun[happening.dispatched.serial] = happening.dispatched
                case Ended():
                    begun.pop(happening.dispatched.serial, None)
                    if account and happening.arrived:
                        account.unused(happening.dispatched.client)
                case Stepped():
                    self._made = happening.moment
                    for dispatched in happening.members:
                        begun.pop(dispatched.serial, None)
                    if account:  # of what the step has shown of clients
                        account.step(happening.arrivals, one_sum(weigh(self.scenario, happening, population)))
                case Closed():
                    self._end = happening
        self._jobs.evaluations.made, self._written = self._made, checkpoint.happenings
        for dispatched in begun.values():  # in order of dispatch: a client's next state follows from its last
            self._jobs.training.begin(dispatched)

    def is_last(self, happening: Happening) -> bool:
        if isinstance(happening, Ended):
            return happening.status == "unfinished"
        return isinstance(happening, Closed) and happening.ends is not None

    # --- handing out --------------------------------------------------------------------------------------------------

    def hand_out(self, happening: Happening) -> tuple[PendingStep | PendingEvaluation | None, Change]:
        self._ahead.append(self._jobs.training.measurements)
        pending = self._jobs.submit(happening)
        gone = self._jobs.forget(set(self._timeline.live), self._timeline.version)
        new = self._jobs.kept(happening) if isinstance(happening, Stepped) else {}
        return pending, Change(new, gone)

    # --- writing ------------------------------------------------------------------------------------------------------

    def record(self, happening: Happening, pending: PendingStep | PendingEvaluation | None) -> Mark | None:
        self._measurements = self._ahead.popleft()
        self._written += 1
        if isinstance(happening, Stepped) and isinstance(pending, PendingStep):
            self._record_step(happening, pending)
        elif isinstance(happening, Closed) and not isinstance(pending, PendingStep):
            return self._record_end(happening, pending)
        elif isinstance(happening, Ended):
            self._recorder.ended(happening)
        return None

    def _record_end(self, closed: Closed, pending: PendingEvaluation | None) -> Mark:
        """Writes the end of a round, or a moment within one, and the evaluation then, if there is one."""
        self._end = closed
        metrics = self._record_evaluation(closed, pending) if pending else None
        self._recorder.closed(closed)
        if pending:
            self._record_divergence(closed, pending)
        return Mark(closed.over, closed.time, closed.in_flight, metrics, closed.ends is not None)

    def _record_step(self, stepped: Stepped, pending: PendingStep) -> None:
        """Writes a server step, and the updates that it used."""
        reply = pending.step.result
        further = {
            "client_flops": self._flops(stepped, [trained.passes for trained, _ in pending.trained]),
            "seconds": pending.step.ended.took.seconds,
            "elapsed_s": self.stopwatch.seconds,
        }
        measured = reply.numbers._replace(columns={**reply.numbers.columns, **further})
        self._recorder.stepped(stepped, pending.weights, pending.trained, measured, reply.compared)
        if reply.searched is not None:
            self._recorder.searched(stepped, reply.searched)
        self._recorder.jobs(stepped, pending.jobs, self.stopwatch.began)
        for arrival, (trained, _) in zip(stepped.arrivals, pending.trained, strict=True):
            if trained.diverged:
                what = f"the {trained.diverged} of client {arrival.client}"
                self._recorder.diverge(stepped, what, arrival.version, arrival.client)
        if reply.diverged:
            self._recorder.diverge(stepped, f"{reply.diverged!r} of the server's model", stepped.version)
        self._made = stepped.moment

    def _flops(self, stepped: Stepped, passes: list[float]) -> float | None:
        """Returns what the clients of a step computed; None if a pass cannot be counted."""
        whole, at = self.described.forward_flops, self.described.flops_at
        if not at:
            return times(3 * sum(passes), whole)
        return sum(3 * seen * at[member.level] for seen, member in zip(passes, stepped.members, strict=True))

    def _record_divergence(self, closed: Closed, pending: PendingEvaluation) -> None:
        """Notes losses that are not finite: of the server's model, then of clients' own models."""
        if not all(math.isfinite(found.sums["loss"]) for found in pending.of_global.values()):
            self._recorder.diverge(closed, "the loss of the server's model", closed.version)
        for client, _, found in pending.of_clients:
            if not math.isfinite(found.sums["loss"]):
                self._recorder.diverge(closed, f"the loss of client {client}'s own model", closed.version, client)
        if not self._recorder.diverged:
            self._good = self._newest()

    def _record_evaluation(self, closed: Closed, pending: PendingEvaluation) -> dict[str, float]:
        """Writes an evaluation. Returns the metrics on the first split that progress shows."""
        for split, found in pending.of_global.items():
            self._recorder.evaluated(closed, split, found)
        for level, split, found in pending.of_slices:
            if isinstance(level, str):
                self._recorder.evaluated(closed, split, found, "group", self.scenario.place_of(level))
            else:
                place = self.scenario.levels.index(level)
                self._recorder.evaluated(closed, split, found, "slice", place, level=level)
        for client, split, found in pending.of_clients:
            levels = self._course.levels
            of = levels.of(client) if isinstance(levels, Levels) else None
            group = self._group(client)
            self._recorder.evaluated(closed, split, found, "client", client, level=of, group=group)
        if closed.version != self._evaluated:  # rounds without a step in between share one evaluation
            self._recorder.jobs(closed, pending.jobs, self.stopwatch.began)
        self._evaluated = closed.version
        return pending.shown(self.scenario.evaluated_splits[0])

    def _group(self, client: int) -> int | None:
        """Returns the place of a client's group, where groups have models of other architectures."""
        return self._jobs.groups.place(client) if isinstance(self._course.levels, Architectures) else None

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> Final:
        assert self._end is not None  # every timeline closes a round
        self._evaluate_unseen(self._end)
        self._recorder.exposed()
        version = self._timeline.version
        model = self._jobs.evaluations.model_in(self._jobs.message(version), version)
        own = self._jobs.evaluations.own_models(version) if self.scenario.run.save_clients else None
        return Final(model, own, self._best())

    def _best(self) -> dict[str, np.ndarray] | None:
        best = [(kept.value, int(key.partition("/")[2])) for key, kept in self.committed.best.items()]
        return self._jobs.evaluations.model_in(*best[0]) if best else None

    def model_keys(self) -> list[str]:
        return [f"message/{max(self.committed.numbered('message'))}"]

    def left(self) -> tuple[Final, dict[str, Any]]:
        found = self._good if self._recorder.diverged and self._good else self._newest()
        return Final(self._jobs.evaluations.model_in(found[0], found[1]["step"]), None, self._best()), found[1]

    def _newest(self) -> tuple[Value[Any], dict[str, Any]]:
        """Returns the message of the last version that was written, and its step, round and virtual time."""
        messages = self.committed.numbered("message")
        version = max(messages)
        return messages[version], {"step": version, "round": self._made.round, "virtual_time": self._made.time}

    def _evaluate_unseen(self, closed: Closed) -> None:
        pending = self._jobs.evaluations.of_unseen(closed.version)
        for job in pending.jobs:
            finished(self._jobs.pool, job)
        for client, split, found in pending.of_clients:
            self._recorder.evaluated(closed, split, found, "unseen", client, group=self._group(client))
        self._recorder.jobs(closed, pending.jobs, self.stopwatch.began)
