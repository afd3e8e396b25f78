"""The engine: follows the timeline, hands out its work ahead of time, writes what comes back in timeline order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actors import finished
from raysim.engine.server.jobs import Tasks
from raysim.engine.server.pending import EvaluationTasks, StepTasks
from raysim.engine.server.recorder import Recorder
from raysim.scenario import Scenario
from raysim.terms import Population
from raysim.workers.protocol import WorkPerClient
from raysim.world import Work
from raysim.world.server_timeline import Closed, Dispatched, Ended, Happening, Started, Stepped, Timeline
from results import Writer

PROGRESS_S = 0.1  # progress is told at most so often


class Progress(NamedTuple):
    """How far a run is."""

    round: int  # rounds that are over
    rounds: int  # of the whole run, if it does not end early
    virtual_time: float
    steps: int
    in_flight: int
    used: int  # updates
    seconds: float  # since the first task was handed out
    evaluated: int | None  # rounds that were over when the model was last evaluated
    metrics: dict[str, float]  # of the global model, then


class Simulation:
    """One run. `run` yields Progress while it writes the tables; after it there are `model`, `clients` and `loop_s`."""

    def __init__(self, scenario: Scenario, tasks: Tasks, writer: Writer) -> None:
        self.scenario, self.tasks = scenario, tasks
        self.recorder = Recorder(writer)
        # What was handed out and is not written yet, with what it waits for.
        self._queue: deque[tuple[Happening, StepTasks | EvaluationTasks | None]] = deque()
        self._metrics: dict[str, float] = {}
        self._evaluated_at: int | None = None
        self._evaluated: EvaluationTasks | None = None  # the last that was written
        self._told = 0.0

    @property
    def totals(self) -> dict[str, int]:
        """Of what happened so far."""
        return dict(self.recorder.totals)

    @property
    def ended_early(self) -> str | None:
        """Why the run ended before all its rounds; None: it did not."""
        return self.recorder.early

    def run(self) -> Iterator[Progress]:
        """Raises JobFailed where a task does."""
        self.described = described = self.tasks.start()
        self.samples = described.samples
        self.recorder.partition(described.partition)
        population = self.scenario.population(self.samples)
        timeline = new_timeline(self.scenario, self.samples, self.tasks.work, self.tasks.worked)
        self._began, self._started = time.time(), time.perf_counter()
        for happening in timeline:
            self._queue.append((happening, self._hand_out(happening, population)))
            self.tasks.forget(set(timeline.live), timeline.version)
            yield from self._write(self.tasks.ahead)
        yield from self._write(0)
        self._evaluate_unseen(self._last)
        self.model = self.tasks.finish(timeline.version)
        self.clients = self.tasks.clients(timeline.version) if self.scenario.run.save_clients else None
        self.loop_s = time.perf_counter() - self._started

    def _hand_out(self, happening: Happening, population: Population) -> StepTasks | EvaluationTasks | None:
        if isinstance(happening, Started):
            self.tasks.training.begin(happening.dispatched)
        if isinstance(happening, Ended):
            self.tasks.training.drop(happening.dispatched)
        if isinstance(happening, Stepped):
            return self.tasks.step(happening, self.scenario.central.weigh(happening.arrivals, population))
        if isinstance(happening, Closed) and self._to_evaluate(happening):
            return self.tasks.evaluate(happening)
        return None

    def _to_evaluate(self, closed: Closed) -> bool:
        return closed.over % self.scenario.run.evaluate_every == 0 or self._is_last(closed)

    def _is_last(self, closed: Closed) -> bool:
        return closed.over == self.scenario.run.rounds or closed.early is not None

    def _write(self, ahead: int) -> Iterator[Progress]:
        """Writes what is done at the head of the queue, until at most `ahead` tasks of it are not."""
        while True:
            while self._queue and (self._queue[0][1] is None or self._queue[0][1].done):
                yield from self._record(*self._queue.popleft())
            if sum(work.undone for _, work in self._queue if work) <= ahead:
                return
            self.tasks.pool.wait()

    def _record(self, happening: Happening, work: StepTasks | EvaluationTasks | None) -> Iterator[Progress]:
        if isinstance(happening, Ended):
            self.recorder.ended(happening, int(self.samples[happening.dispatched.client]))
        elif isinstance(happening, Stepped) and isinstance(work, StepTasks):
            self._record_step(happening, work)
        elif isinstance(happening, Closed):
            if isinstance(work, EvaluationTasks):
                self._record_evaluation(happening, work)
            self.recorder.closed(happening)
            self._last = happening
            yield from self._tell(happening)

    def _record_step(self, stepped: Stepped, work: StepTasks) -> None:
        trained = work.members
        measured = {
            "up_bytes": sum(row["up_bytes"] for row in trained),
            "down_bytes": sum(row["down_bytes"] for row in trained),
            "seconds": work.seconds,
            "elapsed_s": time.perf_counter() - self._started,
            **work.shown["steps"],
        }
        self.recorder.stepped(stepped, work.weights, trained, measured)
        self.recorder.searched(stepped, work.shown["coefficients"])
        self.recorder.worked(stepped, work.jobs, self._began)

    def _record_evaluation(self, closed: Closed, work: EvaluationTasks) -> None:
        for split, sums in work.of_server.items():
            self.recorder.evaluated(closed, split, sums)
        self._evaluated_at = closed.over
        sums = next(iter(work.of_server.values()))
        self._metrics = {key: total / sums["samples"] for key, total in sums.items() if key != "samples"}
        for client, of_client in work.of_clients:
            self.recorder.evaluated(closed, "test", of_client, "client", client)
        if work is not self._evaluated:  # it may serve several rounds without a step
            self.recorder.worked(closed, work.jobs, self._began)
        self._evaluated = work

    def _evaluate_unseen(self, closed: Closed) -> None:
        """closed: the end of the run."""
        work = self.tasks.evaluate_unseen(closed.version)
        for job in work.jobs:
            finished(self.tasks.pool, job)
        for client, of_client in work.of_clients:
            self.recorder.evaluated(closed, "test", of_client, "unseen", client)
        self.recorder.worked(closed, work.jobs, self._began)

    def _tell(self, closed: Closed) -> Iterator[Progress]:
        now, run = time.perf_counter(), self.scenario.run
        if now - self._told < PROGRESS_S and not self._to_evaluate(closed):
            return
        self._told = now
        totals = self.totals
        progress = Progress(
            round=closed.over,
            rounds=run.rounds,
            virtual_time=closed.time,
            steps=totals["steps"],
            in_flight=closed.in_flight,
            used=totals["used"],
            seconds=now - self._started,
            evaluated=self._evaluated_at,
            metrics=self._metrics,
        )
        self.tasks.pool.gauge(
            {
                "round": closed.over,
                "virtual_time": closed.time,
                "in_flight": closed.in_flight,
                "updates": totals["used"],
                **self._metrics,
            }
        )
        yield progress


def new_timeline(
    scenario: Scenario,
    samples: NDArray[np.int64],
    measure: Callable[[], WorkPerClient],
    worked: Callable[[Dispatched], Work] | None = None,
) -> Timeline:
    """The run's timeline. measure: asked for an update's work where delays depend on it. worked: for that really done
    by a client that was dispatched, where that is not known before."""
    work = None
    if scenario.world.delay.needs_work:
        cost = measure()

        def work(client: int) -> Work:
            total = scenario.central.samples_seen(scenario.local, int(samples[client]))
            return Work(cost.flops_per_sample * total, cost.down_bytes, cost.up_bytes)

    rounds, trigger = scenario.run.rounds, scenario.central.trigger
    follow = worked if scenario.follows_work else None
    return Timeline(scenario.world, trigger, samples, rounds, scenario.seed, work, follow)
