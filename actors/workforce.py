"""A scheduler actor and its workers: they carry out a program, and stay for the next one."""

from __future__ import annotations

import gc
import logging
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import ray
from ray.exceptions import GetTimeoutError, OutOfMemoryError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.actors import Actors
from actors.cluster import POLL_S, RayPool
from actors.placement import Demand, Placement, within
from actors.pool import JobFailed, SchedulerDied
from actors.process import state_of_process

STOP_S = 10.0  # seconds that the scheduler may take to end an interrupted run
ASK_S = 5.0  # seconds between two questions for its warnings

Program = Callable[[Any], Iterator[Any]]  # takes a pool, and yields what the caller sees during the run


class Scheduler:
    """The scheduler actor. It is not detached: it and its workers end when the process that started them does."""

    def __init__(self, name: str, placement: Placement, demand: Demand) -> None:
        self._actors = Actors(name, placement)
        self._actors.begin(demand.actors)  # now, to load while this process does
        self._wait_s = demand.wait_s
        self._state: Any = None  # of the process, before its first program ran
        self._pool: RayPool | None = None  # of the program that runs
        self._warnings: list[str] = []  # of the last pool
        self._in_order = False  # whether the last program left no doubt that another may follow
        self._stopped = self._over = 0  # the last program that is to be interrupted, and the last that has ended
        self._changed = threading.Condition()

    def run(self, program: Program, number: int) -> Iterator[Any]:
        """Runs a program and yields what it yields. A JobFailed is yielded, not raised, because Ray would wrap it.

        number: counts the programs, from 1.
        """
        self._state = self._state or state_of_process()
        self._in_order = False
        self._pool = pool = RayPool(self._actors, self._wait_s)
        self._warnings = pool.warnings
        if self._stopped >= number:
            pool.interrupt()
        try:
            yield from program(pool)
            self._in_order = True
        except JobFailed as failed:
            yield failed
        except KeyboardInterrupt:  # raised by the pool after `stop`
            self._in_order = True
        except (Exception, SystemExit) as error:  # raised by the program itself
            yield JobFailed.by(error, "scheduler")
        finally:
            ended = within(STOP_S, pool.rest if self._in_order else pool.close)
            self._pool = pool = program = None  # type: ignore[assignment]  # with all that they hold of the run
            gc.collect()
            self._in_order &= ended and self._state == state_of_process()
            with self._changed:
                self._over = number
                self._changed.notify_all()

    def answer(self) -> list[str]:
        """Returns all warnings of the last run so far. It runs in its own thread, as `stop`."""
        return self._warnings.copy()

    def stop(self, number: int) -> tuple[bool, list[str]]:
        """Interrupts a program and waits until it has ended. Returns whether another may follow, and all warnings."""
        self._stopped = number  # it may not have begun
        if pool := self._pool:
            pool.interrupt()
        with self._changed:
            self._changed.wait_for(lambda: self._over >= number)
        return self._in_order, self.answer()


ALIVE_S = 30.0  # seconds that a scheduler which waits for a run may take to answer, on a busy machine

_log = logging.getLogger("raysim")


class Terms(NamedTuple):
    """What a run asks of a workforce."""

    demand: Demand
    alike: Any = None  # what else must be equal


class Workforce:
    """A scheduler actor and its workers, which carry out one program at a time.

    A program that ends in order leaves them as they are; after any other, the next one gets new ones.
    """

    def __init__(self, terms: Terms, placement: Placement) -> None:
        """placement: the room that is held for the workers."""
        self.terms, self._placement = terms, placement
        self._connection = _connection()
        self._scheduler: Any = None  # Ray's handle; None: it is not started yet, or has ended
        self._programs = 0  # how many it was given

    @property
    def is_started(self) -> bool:
        """Whether it has actors, as far as is known here."""
        return self._scheduler is not None and ray.is_initialized() and self._connection == _connection()

    @property
    def answers(self) -> bool:
        """Whether it can carry out a program at once."""
        if not self.is_started:
            return False
        try:
            ray.get(self._scheduler.answer.remote(), timeout=ALIVE_S)
        except (RayError, GetTimeoutError):
            return False
        return True

    def run(self, program: Program, run: str) -> Generator[Any, None, None]:
        """Runs a program, and yields what it yields. Closing the generator interrupts it. run: its name.

        Raises JobFailed if the program does, and SchedulerDied if the scheduler dies.
        """
        scheduler = self._scheduler = self._scheduler or self._start(run)
        self._programs += 1
        number, warnings, in_order = self._programs, _Warnings(), False
        try:
            stream = scheduler.run.options(num_returns="streaming").remote(program, number)
            for reference in _waiting(stream, scheduler, warnings):
                item = ray.get(reference)
                if isinstance(item, JobFailed):
                    raise item
                yield item
        except RayActorError as error:
            raise SchedulerDied("scheduler", "the scheduler actor died", str(error)) from error
        except OutOfMemoryError as error:
            raise SchedulerDied("scheduler", "its node ran low on memory, and Ray ended it", "", "node") from error
        finally:
            with suppress(RayActorError, OutOfMemoryError, GetTimeoutError):  # else it has written its files
                in_order, told = ray.get(scheduler.stop.remote(number), timeout=STOP_S)
                warnings.log(told)
            if not in_order:
                self.end()

    def _start(self, run: str) -> Any:
        here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
        name = f"{run}-{secrets.token_hex(3)}"  # two drivers may start runs of one name in one second
        scheduler: Any = (
            ray.remote(Scheduler)
            # It is on this node, where it writes files. One of its threads is for `run`, the others answer meanwhile.
            .options(
                name=f"{name}/scheduler",
                num_cpus=0,
                max_restarts=0,
                max_concurrency=3,
                scheduling_strategy=here,
            )
        )
        return scheduler.remote(name, self._placement, self.terms.demand)

    def end(self) -> None:
        """Ends all actors. Workers end with their scheduler."""
        if self.is_started:
            within(STOP_S, partial(ray.kill, self._scheduler))
        self._scheduler = None


class _Warnings:
    """Logs each warning of a run once."""

    def __init__(self) -> None:
        self._told = 0

    def log(self, warnings: list[str]) -> None:
        """Logs those that are new. warnings: all so far."""
        for warning in warnings[self._told :]:
            _log.warning(warning)
        self._told = max(self._told, len(warnings))


def _waiting(stream: Any, scheduler: Any, warnings: _Warnings) -> Iterator[Any]:
    """Yields the references of a stream, and logs the pool's warnings."""
    asked, since = scheduler.answer.remote(), time.monotonic()
    while True:
        ready = ray.wait([stream], num_returns=1, timeout=POLL_S, fetch_local=False)[0]
        if time.monotonic() - since >= ASK_S and ray.wait([asked], timeout=0)[0]:
            with suppress(RayError):  # it has died, and reading the stream raises that
                warnings.log(ray.get(asked))
            asked, since = scheduler.answer.remote(), time.monotonic()
        if ready:
            try:
                yield next(stream)
            except StopIteration:
                return


def _connection() -> tuple[str, str]:
    """Identifies this process's connection to a cluster: another one knows nothing of the actors of this one."""
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_job_id()
