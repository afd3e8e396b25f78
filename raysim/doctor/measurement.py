"""Measures a scenario's work: for a few seconds, its run goes on with one client actor and chunks of one client."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from actors import Job, Pool, finished
from raysim.doctor.usage import Usage, UsageRequest
from raysim.doctor.watched_pool import OF_CLIENTS, Enough, WatchedPool
from raysim.engine.families import family_of
from raysim.scenario import Scenario
from raysim.workers.shared_requests import CLIENT
from raysim.world.peers_timeline import Exchanged
from raysim.world.server_happening import Closed, Stepped
from results import Writer

COUNTED_S = 5.0  # seconds for which the rest of the timeline is followed
_OF_EVALUATION = ("evaluate", "evaluate_clients", "metrics", "compare", "consensus")


@dataclass
class Planned:
    """How much a run does, counted on its timeline."""

    trained: float = 0.0  # updates, or peers' mixes
    steps: float = 0.0  # server steps, or rounds of peers
    evaluations: float = 0.0

    def __mul__(self, times: float) -> Planned:
        return Planned(self.trained * times, self.steps * times, self.evaluations * times)


class Measured(NamedTuple):
    """What was measured of a scenario's work."""

    client_s: float  # seconds for a client's update, or a peer's mix
    clients: int  # number of updates that were measured
    step_s: float | None  # seconds for a server step; None: there is no server, or it came to no step
    evaluation_s: float | None  # seconds of work for an evaluation; None: it came to none
    start_s: float  # seconds until the first job could run
    usage: Usage
    planned: Planned


def to_measure(scenario: Scenario) -> Scenario:
    """Returns the scenario with what does not change a client's work, but lets its parts be seen soon."""
    resources = scenario.resources.model_copy(update={"client_actors": 1, "chunk": 1})
    run = scenario.run.model_copy(update={"evaluate_every": 1})
    return scenario.model_copy(update={"resources": resources, "run": run})


@dataclass(frozen=True)
class Measurement:
    """A program that measures: call it with a pool. It yields a single Measured; None if no client trains."""

    scenario: Scenario
    seconds: float  # for how long clients train

    def __call__(self, pool: Pool) -> Iterator[Measured | None]:
        """Raises JobFailed if a job fails, as the run would."""
        began = time.perf_counter()
        scenario, planned = to_measure(self.scenario), Planned()
        watched = WatchedPool(pool, self.seconds)
        with tempfile.TemporaryDirectory() as folder:
            family = family_of(scenario)
            writer = Writer(Path(folder), "doctor")
            try:
                simulation = family.start(watched, family.recorder(writer), None)
                planned = self._follow(simulation, watched)
            except Enough:  # the set-up took all the time
                pass
            writer.close()
        usage = finished(pool, pool.submit(CLIENT, UsageRequest(), label="read the memory")).result
        yield _measured(watched.jobs, watched.began - began, usage, self._whole(planned))

    def _follow(self, simulation: Any, pool: WatchedPool) -> Planned:
        """Lets the run go on until there is enough, and counts the whole timeline if it depends on nothing more."""
        planned, over, measuring, end = Planned(), 0, True, 0.0
        for happening in simulation.happenings():
            over = _count(happening, planned, self.scenario.run.evaluate_every, over)
            if measuring:
                try:
                    pending, _ = simulation.hand_out(happening)
                    while pending and pending.undone:
                        pool.wait()
                except Enough:
                    measuring, end = False, time.perf_counter() + COUNTED_S
            elif time.perf_counter() >= end or self.scenario.follows_training:
                break
        return planned * (self.scenario.run.rounds / max(over, 1)) if over < self.scenario.run.rounds else planned

    def _whole(self, planned: Planned) -> Planned:
        """Returns what is planned, or what may be expected if no round was seen to its end."""
        if planned.trained:
            return planned
        run = self.scenario.run
        return Planned(run.rounds * self.scenario.in_flight, run.rounds, 1 + run.rounds / run.evaluate_every)


def _count(happening: Any, planned: Planned, every: int, over: int) -> int:
    """Adds a happening to what is planned. Returns how many rounds are over."""
    if isinstance(happening, Stepped):
        planned.trained += len(happening.members)
        planned.steps += 1
    elif isinstance(happening, Closed) and happening.over > over:
        planned.evaluations += happening.over % every == 0
        return happening.over
    elif isinstance(happening, Exchanged):
        planned.trained += len(happening.mixed)
        planned.steps += 1
        planned.evaluations += happening.round % every == 0
        return happening.round + 1
    return over


def _measured(jobs: Sequence[Job[Any, Any]], start_s: float, usage: Usage, planned: Planned) -> Measured | None:
    clients, steps, evaluated = (_seconds(jobs, names) for names in (OF_CLIENTS, ("step",), _OF_EVALUATION))
    if not clients:
        return None
    rounds = sum(job.name in ("step", "consensus") and job.done for job in jobs)
    return Measured(
        client_s=_typical(clients),
        clients=len(clients),
        step_s=_typical(steps) if steps else None,
        evaluation_s=sum(evaluated) / max(rounds, 1) if evaluated else None,
        start_s=start_s,
        usage=usage,
        planned=planned,
    )


def _seconds(jobs: Sequence[Job[Any, Any]], names: tuple[str, ...]) -> list[float]:
    return [job.took.seconds for job in jobs if job.name in names and job.done]


def _typical(seconds: list[float]) -> float:
    """Returns the mean without the first value, which includes loading libraries and allocating memory."""
    return statistics.fmean(seconds[1:] or seconds)
