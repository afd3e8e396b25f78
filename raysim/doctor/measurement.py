"""Measures a scenario's work: for a few seconds, its run goes on with one client actor and chunks of one client."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from actors import Job, Pool, finished
from raysim.doctor.usage import Usage, UsageRequest
from raysim.doctor.watched_pool import OF_CLIENTS, Enough, WatchedPool
from raysim.engine.families import family_of
from raysim.engine.recorder import Nowhere
from raysim.engine.visitor import Visitor
from raysim.scenario import Scenario
from raysim.workers.shared_requests import CLIENT
from raysim.world.peers_timeline import Exchanged
from raysim.world.server_happening import Closed, Stepped

COUNTED_S = 5.0  # seconds for which the rest of the timeline is followed
_OF_EVALUATION = ("evaluate", "evaluate_clients", "metrics", "compare", "consensus")


class Planned(NamedTuple):
    """How much a run does."""

    trained: float  # updates, or peers' mixes
    steps: float  # server steps, or rounds of peers
    evaluations: float


@dataclass
class Counted(Visitor):
    """How much a run has done so far, counted on its timeline."""

    trained: int = 0
    steps: int = 0
    over: int = 0  # rounds
    time: float = 0.0  # virtual time

    def stepped(self, stepped: Stepped) -> None:
        self.trained += len(stepped.members)
        self.steps += 1

    def closed(self, closed: Closed) -> None:
        self.over, self.time = closed.over, closed.time

    def exchanged(self, exchanged: Exchanged) -> None:
        self.trained += len(exchanged.mixed)
        self.steps += 1
        self.over, self.time = exchanged.version, exchanged.time

    def planned(self, scenario: Scenario) -> Planned:
        """Returns what is to be expected of the whole run by what it did so far, or by the scenario if none trained.

        Where only what is spent ends the run, it is what it did so far.
        """
        horizon = scenario.run.horizon
        if not self.trained:
            rounds = min(horizon.rounds, max(horizon.updates / scenario.in_flight, 1))
            rounds = 1 if math.isinf(rounds) else rounds
            return Planned(rounds * scenario.in_flight, rounds, 1 + rounds / (horizon.every_rounds or 1))
        so_far = ((horizon.rounds, self.over), (horizon.time, self.time), (horizon.updates, self.trained))
        times = min((most / max(done, 1e-9) for most, done in so_far if math.isfinite(most)), default=1.0)
        times = max(times, 1.0) if self.over else 1.0
        every = horizon.every_time
        evaluations = self.time // every if every else self.over // (horizon.every_rounds or 1)
        return Planned(self.trained * times, self.steps * times, evaluations * times)


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
        counted, watched = Counted(), WatchedPool(pool, self.seconds)
        with suppress(Enough):
            self._follow(watched, counted)
        usage = finished(pool, pool.submit(CLIENT, UsageRequest(), label="read the memory")).result
        yield _measured(watched.jobs, watched.began - began, usage, counted.planned(self.scenario))

    def _follow(self, watched: Any, counted: Counted) -> None:
        """Lets a run go on until there is enough, and counts the whole timeline if it depends on nothing more.

        Raises Enough if the time is over while workers start, or while the timeline waits for a training.
        """
        family = family_of(to_measure(self.scenario))
        simulation, end = family.start(watched, family.recorder(Nowhere()), None), None
        for happening in counted.follow(simulation.happenings()):
            if end is None:
                try:
                    pending, _ = simulation.hand_out(happening)
                    while pending and pending.undone:
                        watched.wait()
                except Enough:
                    end = time.perf_counter() + COUNTED_S
            elif time.perf_counter() >= end or self.scenario.follows_training:
                break


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
    return [job.ended.took.seconds for job in jobs if job.name in names and job.done]


def _typical(seconds: list[float]) -> float:
    """Returns the mean without the first value, which includes loading libraries and allocating memory."""
    return statistics.fmean(seconds[1:] or seconds)
