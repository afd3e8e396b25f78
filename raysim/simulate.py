"""The engine: follows the timeline, hands out its work ahead of time, writes what comes back in timeline order."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raysim import rows
from raysim.algorithms import Population
from raysim.protocol import WorkPerClient
from raysim.scenario import Scenario
from raysim.tasks import EvaluationTasks, StepTasks, Tasks
from raysim.world import Work
from raysim.world.timeline import Closed, Ended, Happening, Stepped, Timeline
from results import Writer

PROGRESS_S = 0.1  # progress is told at most so often


class Progress(NamedTuple):
    """How far a run is."""

    round: int  # rounds that are over
    rounds: int
    virtual_time: float
    steps: int
    in_flight: int
    used: int  # updates
    seconds: float  # since the first task was handed out
    metrics: dict[str, float]  # of the global model, when last evaluated


class Simulation:
    """One run. `run` yields Progress while it writes the tables; after it, `totals`, `model` and `loop_s` are there."""

    def __init__(self, scenario: Scenario, tasks: Tasks, writer: Writer) -> None:
        self.scenario, self.tasks, self.writer = scenario, tasks, writer
        self.totals = Counter(dispatched=0, used=0, discarded=0, dropped=0, unfinished=0, steps=0, rounds=0)
        # What was handed out and is not written yet, with what it waits for.
        self._queue: deque[tuple[Happening, StepTasks | EvaluationTasks | None]] = deque()
        self._metrics: dict[str, float] = {}
        self._late = 0  # updates discarded since the last step
        self._told = 0.0

    def run(self) -> Iterator[Progress]:
        """Raises JobFailed where a task does."""
        self.described = described = self.tasks.start()
        self.samples = described.samples
        for row in rows.partition_rows(described.partition):
            self.writer.add("partition", row)
        population = Population(int((self.samples > 0).sum()), int(self.samples.sum()))
        timeline = new_timeline(self.scenario, self.samples, self.tasks.work)
        self._started = time.perf_counter()
        for happening in timeline:
            self._queue.append((happening, self._hand_out(happening, population)))
            self.tasks.forget(set(timeline.live), timeline.version)
            yield from self._write(self.tasks.ahead)
        yield from self._write(0)
        self.model = self.tasks.finish(timeline.version)
        self.loop_s = time.perf_counter() - self._started

    def _hand_out(self, happening: Happening, population: Population) -> StepTasks | EvaluationTasks | None:
        if isinstance(happening, Stepped):
            return self.tasks.step(happening, self.scenario.algorithm.weigh(happening.arrivals, population))
        if isinstance(happening, Closed) and self._to_evaluate(happening):
            return self.tasks.evaluate(happening)
        return None

    def _to_evaluate(self, closed: Closed) -> bool:
        over = closed.round + 1
        return over % self.scenario.run.evaluate_every == 0 or over == self.scenario.run.rounds

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
            self._record_ended(happening)
        elif isinstance(happening, Stepped) and isinstance(work, StepTasks):
            self._record_step(happening, work)
        elif isinstance(happening, Closed):
            if isinstance(work, EvaluationTasks):
                self._record_evaluation(happening, work)
            self.totals["rounds"] = happening.round + 1
            yield from self._tell(happening)

    def _record_ended(self, ended: Ended) -> None:
        self.totals.update(["dispatched", ended.status])
        self._late += ended.status == "discarded"
        self.writer.add("updates", rows.ended_row(ended, int(self.samples[ended.dispatched.client])))

    def _record_step(self, stepped: Stepped, work: StepTasks) -> None:
        trained = work.members
        for row, measured in zip(rows.used_rows(stepped, work.weights), trained, strict=True):
            self.writer.add("updates", {**row, **measured})
        self.totals.update({"dispatched": len(trained), "used": len(trained), "steps": 1})
        measured = {
            "up_bytes": sum(row["up_bytes"] for row in trained),
            "down_bytes": sum(row["down_bytes"] for row in trained),
            "seconds": work.seconds,
            "elapsed_s": time.perf_counter() - self._started,
        }
        self.writer.add("steps", {**rows.step_row(stepped, self._late), **measured})
        self._late = 0

    def _record_evaluation(self, closed: Closed, work: EvaluationTasks) -> None:
        sums = work.of_server
        self._metrics = {key: total / sums["samples"] for key, total in sums.items() if key != "samples"}
        for row in rows.evaluation_rows(closed, "global", None, "test", sums):
            self.writer.add("evaluations", row)
        for client, of_client in work.of_clients:
            for row in rows.evaluation_rows(closed, "client", client, "test", of_client):
                self.writer.add("evaluations", row)

    def _tell(self, closed: Closed) -> Iterator[Progress]:
        now, run = time.perf_counter(), self.scenario.run
        over = closed.round + 1
        if now - self._told < PROGRESS_S and over < run.rounds:
            return
        self._told = now
        totals = self.totals
        progress = Progress(
            round=over,
            rounds=run.rounds,
            virtual_time=closed.time,
            steps=totals["steps"],
            in_flight=closed.in_flight,
            used=totals["used"],
            seconds=now - self._started,
            metrics=self._metrics,
        )
        self.tasks.pool.gauge(
            {
                "round": over,
                "virtual_time": closed.time,
                "in_flight": closed.in_flight,
                "updates": totals["used"],
                **self._metrics,
            }
        )
        yield progress


def new_timeline(scenario: Scenario, samples: NDArray[np.int64], measure: Callable[[], WorkPerClient]) -> Timeline:
    """The run's timeline. measure: asked for an update's work where delays depend on it."""
    work = None
    if scenario.world.delay.needs_work:
        cost = measure()

        def work(client: int) -> Work:
            total = scenario.local.total_samples(int(samples[client]))
            return Work(cost.flops_per_sample * total, cost.down_bytes, cost.up_bytes)

    rounds, trigger = scenario.run.rounds, scenario.algorithm.trigger
    return Timeline(scenario.world, trigger, samples, rounds, scenario.seed, work)
