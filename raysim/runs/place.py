"""Where runs are carried out: on Ray, whose actors wait for the next run when one is over, in worker processes of this
machine, or in this process."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from actors import InlinePool, JobFailed, LocalPool, MissingResources
from actors.process import deferring
from raysim.engine.families import family_of
from raysim.engine.progress import Progress
from raysim.parts.process import isolated, unusual_settings
from raysim.runs.execution import Execution
from raysim.runs.observing import NewRows
from raysim.scenario import Scenario
from raysim.workers.device import gpus_here
from results.texts import count

if TYPE_CHECKING:
    from actors.placement import Demand
    from actors.workforce import Terms, Workforce

_log = logging.getLogger("raysim")
PROCESS_BYTES = 0.3e9  # what a process with PyTorch takes before it has done anything


@dataclass(frozen=True)
class RunPlace:
    """The place that a user asks for; by default Ray. Raises ValueError where several are named.

    inline, local, address: see `raysim.run`.
    """

    inline: bool = False
    local: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.local is not None and (self.inline or self.address is not None):
            other = "inline=True" if self.inline else f"address={self.address!r}"
            must = "must be given without inline and address"
            raise ValueError(f"local: {must}, got local={self.local} and {other}; take one place to run")
        if self.local is not None and self.local < 1:
            must = "must be a number of processes, at least 1"
            raise ValueError(f"local: {must}, got {self.local}; None stands for Ray")

    @property
    def on_ray(self) -> bool:
        """Whether it is a Ray cluster."""
        return not self.inline and self.local is None

    def __str__(self) -> str:
        if self.local is not None:
            return f"{count(self.local, 'worker')} on this machine"
        return "this process" if self.inline else "Ray"

    def connect(self, scenarios: Sequence[Scenario], at_once: int = 1) -> None:
        """Connects to Ray, if runs are there. If it starts a local Ray, that is large enough for those that need most.

        at_once: how many run at a time.
        """
        if self.on_ray:
            from actors.connection import connect

            connect([demand_of(scenario) for scenario in scenarios], self.address, at_once)

    @contextmanager
    def hired(self, scenario: Scenario) -> Iterator[Workforce | WithoutRay]:
        """Within the block, there is what carries out a run of the scenario.

        Raises MissingResources if there is no room for it.
        """
        if not self.on_ray:
            yield WithoutRay(None if self.local is None else _gpus(scenario, self.local))
            return
        self.connect([scenario])
        from actors.session import SESSION

        with SESSION.hired(terms_of(scenario)) as workforce:
            yield workforce


class WithoutRay(NamedTuple):
    """Carries out runs with the engine in this process, and workers in it, too, or in processes beside it."""

    gpus: Sequence[str] | None = None  # for each worker process, the GPU that it may use; None: there are no processes

    @property
    def notes(self) -> list[str]:
        """What of this process can give a run other results than a new process, in words."""
        return unusual_settings() if self.gpus is None else []

    def run(self, execution: Execution, run: str) -> Generator[Progress | NewRows, None, None]:
        """Carries out a run, and yields what it yields. Closing the generator interrupts it.

        Raises JobFailed if a job fails, or what is not a job.
        """
        with isolated(torch=self.gpus is None):
            with deferring():
                pool = InlinePool() if self.gpus is None else LocalPool(self.gpus)
            steps = execution(pool)
            try:
                while True:
                    with deferring():
                        step = next(steps, None)
                    _log_all(pool.warnings)
                    if step is None:
                        return
                    yield step
            except JobFailed:
                raise
            except (Exception, SystemExit) as error:  # not of a job, but the scheduler actor reports it like one
                raise JobFailed.by(error, "scheduler") from error
            finally:
                with deferring():
                    steps.close()
                    pool.close()
                _log_all(pool.warnings)


def _gpus(scenario: Scenario, local: int) -> list[str]:
    """Returns the GPU of each worker process; empty texts if the scenario asks for none. A process does all kinds of
    jobs, so it needs the largest share that one of them needs.

    Raises MissingResources if this machine has not enough memory or GPUs.
    """
    if local * PROCESS_BYTES > (have := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")):
        raise MissingResources(
            f"local: this machine must have {PROCESS_BYTES / 1e9:g} GB of memory for each process, got {local} "
            f"processes and {have / 1e9:.0f} GB; take fewer, such as one for each of its {os.cpu_count()} cores"
        )
    share = min(max(group.needs.gpus for group in family_of(scenario).groups), 1.0)
    if share == 0:
        return [""] * local
    gpus, each = gpus_here(), int(1 / share)
    if local > len(gpus) * each:
        raise MissingResources(
            f"local: this machine must have {share:g} GPU for each process, got {local} processes and {len(gpus)} GPU; "
            "take fewer, or ask for less under resources"
        )
    return [gpus[worker % len(gpus)] for worker in range(local)]


def _log_all(warnings: list[str]) -> None:
    """Logs warnings, the first one first, and empties the list."""
    while warnings:
        _log.warning(warnings.pop(0))


# What runs ask of Ray, which is loaded within functions only.


@contextmanager
def session() -> Iterator[None]:
    """Keeps the actors of each run within the block for the next one that asks for the same, and ends them after it.

    Outside of such a block, actors wait for a minute; `shutdown` ends them at once.
    """
    from actors.session import SESSION

    with SESSION.held():
        yield


def shutdown() -> None:
    """Ends the actors on Ray that wait for the next run of this process, which gives back what they have reserved."""
    if module := sys.modules.get("actors.session"):  # else there are none
        module.SESSION.shutdown()


def terms_of(scenario: Scenario) -> Terms:
    """Returns on which terms actors carry out a scenario."""
    from actors.workforce import Terms

    asked = scenario.resources
    groups = [(group.name, *group[2:]) for group in family_of(scenario).groups]  # without factories, which may differ
    return Terms(demand_of(scenario), (groups, asked.threads))


def demand_of(scenario: Scenario) -> Demand:
    """Returns what the scenario asks of a Ray cluster for each of its actors."""
    from actors.placement import Demand

    groups = family_of(scenario).groups
    actors = {f"{group.name}-{number}": group.needs for group in groups for number in range(group.workers)}
    return Demand(actors, scenario.resources.wait_s)
