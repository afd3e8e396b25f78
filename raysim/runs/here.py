"""Runs without Ray: the engine is in this process, and workers are in it, too, or in processes beside it."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

from actors import InlinePool, JobFailed, LocalPool, MissingResources
from actors.interrupt import deferring
from raysim.engine.families import family_of
from raysim.engine.progress import Progress
from raysim.parts.process import isolated, unusual_settings
from raysim.runs.execution import Execution
from raysim.runs.machines import environment, pin
from raysim.runs.observing import NewRows
from raysim.scenario import Scenario
from raysim.workers.device import gpus_here

_log = logging.getLogger("raysim")
PROCESS_BYTES = 0.3e9  # what a process with PyTorch takes before it has done anything


class Here(NamedTuple):
    """This process, as what carries out runs."""

    gpus: Sequence[str] | None = None  # for each worker process, the GPU that it may use; None: there are no processes
    environment: Mapping[str, str] = {}  # variables of these processes

    @classmethod
    def hired(cls, scenario: Scenario, local: int | None) -> Here:
        """Returns it with so many worker processes, or with none, for a run of the scenario.

        Raises MissingResources if this machine does not have what they need, and ScenarioError if this process cannot
        compute as the scenario asks.
        """
        if local is None:
            pin(scenario.resources.cpu_capability)
            return cls()
        if local * PROCESS_BYTES > (have := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")):
            raise MissingResources(
                f"local: this machine must have {PROCESS_BYTES / 1e9:g} GB of memory for each process, got {local} "
                f"processes and {have / 1e9:.0f} GB; take fewer, such as one for each of its {os.cpu_count()} cores"
            )
        return cls(_gpus(scenario, local), environment(scenario.resources.cpu_capability))

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
                pool = InlinePool() if self.gpus is None else LocalPool(self.gpus, self.environment)
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
    jobs, so it needs the largest share that one of them needs."""
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
