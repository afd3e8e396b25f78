"""Measures a scenario's work: for a few seconds, its run goes on with one client actor and chunks of one client."""

from __future__ import annotations

import math
import pickle
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from actors import Job, Pool, Query, finished
from raysim.engine.families import family_of
from raysim.engine.recorder import Nowhere
from raysim.engine.rows import Happened
from raysim.scenario import Scenario
from raysim.workers.device import CONTEXT_BYTES
from raysim.workers.shared_requests import CLIENT
from raysim.world.peers_timeline import Exchanged
from raysim.world.server_happening import Closed, Stepped

if TYPE_CHECKING:
    from raysim.workers.workbench import Workbench

COUNTED_S = 5.0  # seconds for which the rest of the timeline is followed
_OF_CLIENTS = ("train", "mix")  # names of the jobs in which a client, or a peer, trains
_OF_EVALUATION = ("evaluate", "evaluate_clients", "metrics", "compare", "consensus")


class Usage(NamedTuple):
    """The memory of a process that trains clients."""

    actor_bytes: int  # most bytes that it had for itself
    gpu_bytes: int | None  # most bytes that it had of a GPU; None without one
    data_bytes: int  # bytes of the data, which the processes of a node share
    model_bytes: int


class Planned(NamedTuple):
    """How much a run does."""

    trained: float  # updates, or peers' mixes
    steps: float  # server steps, or rounds of peers
    evaluations: float


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
        """Raises JobFailed if a job fails, as the run would.

        When clients have trained for long enough, the timeline goes on without jobs, if it depends on none, to count
        how much the run does.
        """
        family, asked = family_of(to_measure(self.scenario)), time.perf_counter()
        recorder, jobs, counted = family.recorder(Nowhere()), list[Job[Any, Any]](), _Counted()
        simulation = family.start(pool, recorder, None)
        began = time.perf_counter()

        def is_over(seconds: float) -> bool:
            over = time.perf_counter() - began >= seconds
            return over and any(job.done for job in jobs if job.name in _OF_CLIENTS)

        for happening in simulation.happenings():
            counted.add(happening)
            if not is_over(self.seconds):
                pending, _ = simulation.hand_out(happening)
                jobs += pending.jobs if pending else ()
                while pending and pending.undone and not is_over(self.seconds):
                    pool.wait()
            elif is_over(self.seconds + COUNTED_S) or self.scenario.follows_training:
                break
        usage = finished(pool, pool.submit(CLIENT, UsageRequest(), label="read the memory")).result
        yield _measured(jobs, began - asked, usage, counted.planned(self.scenario))


@dataclass
class _Counted:
    """What has happened so far on a run's timeline."""

    trained: int = 0
    steps: int = 0
    rounds: int = 0
    time: float = 0.0  # virtual time

    def add(self, happening: Happened) -> None:
        if isinstance(happening, Stepped | Exchanged):
            self.trained += len(happening.members if isinstance(happening, Stepped) else happening.mixed)
            self.steps += 1
        if isinstance(happening, Closed | Exchanged):
            self.rounds = happening.over if isinstance(happening, Closed) else happening.version
            self.time = happening.time

    def planned(self, scenario: Scenario) -> Planned:
        """Returns what is to be expected of the whole run by what it did so far, or by the scenario if none trained.

        Where only what is spent ends the run, it is what it did so far.
        """
        horizon = scenario.run.horizon
        if not self.trained:
            rounds = min(horizon.rounds, max(horizon.updates / scenario.in_flight, 1))
            rounds = 1 if math.isinf(rounds) else rounds
            return Planned(rounds * scenario.in_flight, rounds, 1 + rounds / (horizon.every_rounds or 1))
        so_far = ((horizon.rounds, self.rounds), (horizon.time, self.time), (horizon.updates, self.trained))
        times = min((most / max(done, 1e-9) for most, done in so_far if math.isfinite(most)), default=1.0)
        times = max(times, 1.0) if self.rounds else 1.0
        every = horizon.every_time
        evaluations = self.time // every if every else self.rounds // (horizon.every_rounds or 1)
        return Planned(self.trained * times, self.steps * times, evaluations * times)


def _measured(jobs: Sequence[Job[Any, Any]], start_s: float, usage: Usage, planned: Planned) -> Measured | None:
    clients, steps, evaluated = (_seconds(jobs, names) for names in (_OF_CLIENTS, ("step",), _OF_EVALUATION))
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


# --- memory -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UsageRequest(Query[Usage]):
    """Asks a worker how much memory it needed."""

    name = "usage"

    def ask(self, worker: Workbench) -> Usage:
        gpu_bytes, arrays = None, list[pickle.PickleBuffer]()
        if worker.device.type == "cuda":
            import torch

            gpu_bytes = torch.cuda.max_memory_reserved() + CONTEXT_BYTES
        rest = pickle.dumps(worker.federation, protocol=5, buffer_callback=arrays.append)
        data_bytes = len(rest) + sum(array.raw().nbytes for array in arrays)
        return Usage(_peak_bytes(), gpu_bytes, data_bytes, 4 * len(worker.start.w))


def _peak_bytes() -> int:
    """Returns the most bytes that this process had, without those that it shares with others of its node."""
    status = Path("/proc/self/status")
    if not status.exists():
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    kilobytes = {line[0]: int(line[1]) for line in map(str.split, status.read_text().splitlines()) if "kB" in line}
    return (kilobytes["VmHWM:"] - kilobytes.get("RssShmem:", 0)) * 1024
