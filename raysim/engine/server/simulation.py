"""A run with a server that has started: hands out jobs for what happens, and records what they return."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any

from actors import finished
from raysim.engine.checkpoint import Checkpoint, skip
from raysim.engine.committed import Change, Committed
from raysim.engine.family import Final
from raysim.engine.progress import Mark, Stopwatch
from raysim.engine.server.jobs import ServerJobs
from raysim.engine.server.pending import PendingEvaluation, PendingStep
from raysim.engine.server.recorder import ServerRecorder
from raysim.engine.server.timeline import new_timeline
from raysim.engine.server.weights import weigh
from raysim.scenario import Scenario
from raysim.world.server_happening import Closed, Dispatched, Ended, Happening, Started, Stepped


class ServerSimulation:
    """A run with a server that has started."""

    def __init__(
        self, scenario: Scenario, jobs: ServerJobs, recorder: ServerRecorder, checkpoint: Checkpoint | None
    ) -> None:
        self.scenario, self.described = scenario, jobs.described
        self._jobs, self._recorder = jobs, recorder
        self._samples = self.described.samples
        self._population = scenario.population(self._samples)
        self._evaluated: int | None = None  # version of the last evaluation that was written
        self._end: Closed | None = None  # the last round that was written
        self._ahead: deque[int] = deque()  # for each happening that is not yet written: measurements before it
        self._measurements = 0  # those before the last happening that was written
        self._timeline = new_timeline(scenario, self._samples, jobs.cost, jobs.training.measured)
        self._happenings = iter(self._timeline)
        if checkpoint:
            self.committed = jobs.recall(checkpoint)
            self._recall(checkpoint)
        else:
            self.committed = Committed(jobs.kept(None))
            recorder.partition(self.described.partition)
        self.stopwatch = Stopwatch.start(checkpoint.seconds if checkpoint else 0.0)

    def happenings(self) -> Iterator[Happening]:
        return self._happenings

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def memory(self) -> dict[str, Any]:
        # Without later measurements: how many there are depends on the workers, and a fork measures these anew.
        return {"evaluated": self._evaluated, "training": self._jobs.training.memory(self._measurements)}

    def _recall(self, checkpoint: Checkpoint) -> None:
        """Moves the timeline on to a checkpoint, and starts the training again that was under way then."""
        self._evaluated = checkpoint.memory["simulation"]["evaluated"]
        training: dict[int, Dispatched] = {}
        for happening in skip(self._happenings, checkpoint):
            if isinstance(happening, Started):
                training[happening.dispatched.serial] = happening.dispatched
            for dispatched in _taken(happening):
                training.pop(dispatched.serial, None)
        for dispatched in training.values():  # in order of dispatch: a client's next state follows from its last
            self._jobs.training.begin(dispatched)

    def is_last(self, happening: Happening) -> bool:
        if isinstance(happening, Ended):
            return happening.status == "unfinished"
        return isinstance(happening, Closed) and (happening.over == self.scenario.run.rounds or bool(happening.early))

    # --- handing out --------------------------------------------------------------------------------------------------

    def hand_out(self, happening: Happening) -> tuple[PendingStep | PendingEvaluation | None, Change]:
        self._ahead.append(self._jobs.training.measurements)
        pending = self._submit(happening)
        gone = self._jobs.forget(set(self._timeline.live), self._timeline.version)
        new = self._jobs.kept(happening) if isinstance(happening, Stepped) else {}
        return pending, Change(new, [f"message/{version}" for version in gone])

    def _submit(self, happening: Happening) -> PendingStep | PendingEvaluation | None:
        if isinstance(happening, Started):
            self._jobs.training.begin(happening.dispatched)
        if isinstance(happening, Ended):
            self._jobs.training.drop(happening.dispatched)
        if isinstance(happening, Stepped):
            weights = weigh(self.scenario, happening.arrivals, self._population, happening.version)
            return self._jobs.step(happening, weights)
        if isinstance(happening, Closed) and self._is_evaluated(happening):
            return self._jobs.evaluate(happening)
        return None

    def _is_evaluated(self, closed: Closed) -> bool:
        run = self.scenario.run
        return closed.over % run.evaluate_every == 0 or closed.over == run.rounds or closed.early is not None

    # --- writing ------------------------------------------------------------------------------------------------------

    def record(self, happening: Happening, pending: PendingStep | PendingEvaluation | None) -> Mark | None:
        self._measurements = self._ahead.popleft()
        if isinstance(happening, Ended):
            self._recorder.ended(happening, int(self._samples[happening.dispatched.client]))
        elif isinstance(happening, Stepped) and isinstance(pending, PendingStep):
            self._record_step(happening, pending)
        elif isinstance(happening, Closed):
            self._end, metrics = happening, None
            if isinstance(pending, PendingEvaluation):
                metrics = self._record_evaluation(happening, pending)
            self._recorder.closed(happening)
            if isinstance(pending, PendingEvaluation):
                self._record_divergence(happening, pending)
            return Mark(happening.over, happening.time, happening.in_flight, metrics)
        return None

    def _record_step(self, stepped: Stepped, pending: PendingStep) -> None:
        reply = pending.step.result
        compared = reply.compared or [{}] * len(stepped.members)
        pairs = zip(pending.trained, compared, strict=True)
        trained_by = [(trained.numbers | more, worker) for (trained, worker), more in pairs]
        measured = {**reply.numbers, "seconds": pending.step.took.seconds, "elapsed_s": self.stopwatch.seconds}
        self._recorder.stepped(stepped, pending.weights, trained_by, measured)
        self._recorder.searched(stepped, reply.coefficients)
        self._recorder.jobs(stepped, pending.jobs, self.stopwatch.began)
        for arrival, (trained, _) in zip(stepped.arrivals, pending.trained, strict=True):
            if trained.diverged:
                what = f"the {trained.diverged} of client {arrival.client}"
                self._diverge(stepped, what, arrival.version, arrival.client)
        if reply.diverged:
            self._diverge(stepped, f"{reply.diverged!r} of the server's model", stepped.version)

    def _record_divergence(self, closed: Closed, pending: PendingEvaluation) -> None:
        """Notes losses that are not finite: of the server's model, then of clients' own models."""
        if not all(math.isfinite(found.sums["loss"]) for found in pending.of_global.values()):
            self._diverge(closed, "the loss of the server's model", closed.version)
        for client, _, found in pending.of_clients:
            if not math.isfinite(found.sums["loss"]):
                self._diverge(closed, f"the loss of client {client}'s own model", closed.version, client)

    def _diverge(self, happening: Stepped | Closed, what: str, version: int, client: int | None = None) -> None:
        go_on = self.scenario.run.on_divergence == "go_on"
        self._recorder.diverge(happening, what, version=version, client=client, go_on=go_on)

    def _record_evaluation(self, closed: Closed, pending: PendingEvaluation) -> dict[str, float]:
        """Writes an evaluation. Returns the metrics on the first split that progress shows."""
        for split, found in pending.of_global.items():
            self._recorder.evaluated(closed, split, found)
        for client, split, found in pending.of_clients:
            self._recorder.evaluated(closed, split, found, "client", client)
        if closed.version != self._evaluated:  # rounds without a step in between share one evaluation
            self._recorder.jobs(closed, pending.jobs, self.stopwatch.began)
        self._evaluated = closed.version
        return pending.shown(self.scenario.evaluated_splits[0])

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> Final:
        assert self._end is not None  # every timeline closes a round
        self._evaluate_unseen(self._end)
        model = self._jobs.final_model(self._timeline.version)
        save = self.scenario.run.save_clients
        return Final(model, self._jobs.own_models(self._timeline.version) if save else None)

    def _evaluate_unseen(self, closed: Closed) -> None:
        pending = self._jobs.evaluate_unseen(closed.version)
        for job in pending.jobs:
            finished(self._jobs.pool, job)
        for client, split, found in pending.of_clients:
            self._recorder.evaluated(closed, split, found, "unseen", client)
        self._recorder.jobs(closed, pending.jobs, self.stopwatch.began)


def _taken(happening: Happening) -> tuple[Dispatched, ...]:
    """Returns the dispatches that end with a happening, used or not."""
    if isinstance(happening, Ended):
        return (happening.dispatched,)
    return happening.members if isinstance(happening, Stepped) else ()
