"""Runs a program in a scheduler actor."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, OutOfMemoryError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.cluster import PATIENCE_S, POLL_S, RayPool
from actors.crew import is_there
from actors.memory import brief
from actors.placement import Placement, within
from actors.pool import JobFailed, SchedulerDied
from actors.pulse import Pulse, interval

STOP_S = 10.0  # seconds that the scheduler may take to end an interrupted run

_log = logging.getLogger("raysim")

Program = Callable[[Any], Iterator[Any]]  # takes a pool, and yields what the caller sees as the run goes on


class Scheduler:
    """The scheduler actor. It is not detached: it and its workers end when the process that started them does."""

    def __init__(
        self,
        run: str,
        placement: Placement,
        patience_s: float | None,
        environment: Mapping[str, str],
        wait_s: float,
    ) -> None:
        self._pool = RayPool(run, placement, patience_s, environment, wait_s)
        self._ended = threading.Event()

    def run(self, program: Program) -> Iterator[Any]:
        """Runs a program and yields what it yields. A JobFailed is yielded, not raised, because Ray would wrap it."""
        try:
            yield from program(self._pool)
        except JobFailed as failed:
            yield failed
        except KeyboardInterrupt:  # raised by the pool after `stop`
            pass
        except (Exception, SystemExit) as error:  # raised by the program itself
            yield JobFailed.by(error, "scheduler")
        finally:
            self._ended.set()
            within(STOP_S, self._pool.close)

    def answer(self) -> list[str]:
        """Answers a ping, with all warnings of the pool so far. It runs in a thread of its own, as `stop`."""
        return self._pool.warnings.copy()

    def stop(self) -> list[str]:
        """Interrupts the run and waits until it has ended. Returns what `answer` does."""
        self._pool.interrupt()
        self._ended.wait()
        return self.answer()


class _Warnings:
    """Logs each warning of a pool once."""

    def __init__(self) -> None:
        self._told = 0

    def log(self, warnings: Sequence[str]) -> None:
        """Logs those that are new. warnings: all so far."""
        for warning in warnings[self._told :]:
            _log.warning(warning)
        self._told = max(self._told, len(warnings))

    def came(self, reference: Any) -> bool:
        """Whether a ping of the scheduler is answered. Logs the warnings that came with the answer."""
        if not is_there(reference):
            return False
        with suppress(RayError):  # it has died, and reading the stream raises that
            self.log(ray.get(reference))
        return True


def run_on_ray(
    program: Program,
    run: str,
    placement: Placement,
    patience_s: float | None = PATIENCE_S,
    environment: Mapping[str, str] | None = None,
    wait_s: float = 0.0,
) -> Generator[Any, None, None]:
    """Runs a program in a scheduler actor, and yields what it yields. Closing the generator interrupts the run.

    patience_s: how long an actor may not answer before it is given up; None: for ever. environment: variables of the
    actors' processes. wait_s: how long the run waits for a node while nothing else can go on, if over two minutes.
    Raises JobFailed if the program does, and SchedulerDied if the scheduler dies or is given up.
    """
    here = NodeAffinitySchedulingStrategy(node_id=ray.get_runtime_context().get_node_id(), soft=False)
    environment = dict(environment or {})
    scheduler: Any = (
        ray.remote(Scheduler)
        # It is on this node, where it writes files. One of its threads is for `run`, the others answer meanwhile.
        .options(
            name=f"{run}/scheduler",
            num_cpus=0,
            max_restarts=0,
            max_concurrency=3,
            scheduling_strategy=here,
            **({"runtime_env": {"env_vars": environment}} if environment else {}),
        )
        .remote(run, placement, patience_s, environment, wait_s)
    )
    stream = scheduler.run.options(num_returns="streaming").remote(program)
    warnings = _Warnings()
    try:
        for reference in _waiting(stream, scheduler, patience_s, warnings):
            item = ray.get(reference)
            if isinstance(item, JobFailed):
                raise item
            yield item
    except RayActorError as error:
        raise SchedulerDied("scheduler", f"the scheduler actor died: {_why(error)}", "") from error
    except OutOfMemoryError as error:
        raise SchedulerDied("scheduler", f"the scheduler actor died: {brief(error)}", "", "node") from error
    finally:
        _end(scheduler, warnings)


def _waiting(stream: Any, scheduler: Any, patience_s: float | None, warnings: _Warnings) -> Iterator[Any]:
    """Yields the references of a stream, and logs the pool's warnings.

    Raises SchedulerDied if the scheduler does not answer.
    """
    pulse = Pulse("scheduler", scheduler.answer.remote, warnings.came)
    patience = math.inf if patience_s is None else patience_s
    listened = time.monotonic()
    while True:
        ready = ray.wait([stream], num_returns=1, timeout=POLL_S, fetch_local=False)[0]
        now = time.monotonic()
        if now - listened >= interval(patience):
            if warning := pulse.beat(now - listened, patience):
                _log.warning(warning)
            listened = now
        if pulse.silent_s >= patience:
            raise SchedulerDied("scheduler", f"it has not answered for {pulse.silent_s:.0f} s", "")
        if ready:
            try:
                yield next(stream)
            except StopIteration:
                return


def _why(error: RayActorError) -> str:
    """Returns the reason that Ray gives for an actor's death: the last line of its message, without advice."""
    return str(error).rstrip().rpartition("\n")[2].partition(" If the process was killed")[0].rstrip(".")


def _end(scheduler: Any, warnings: _Warnings) -> None:
    """Lets the scheduler write its files, and then ends it; if that takes too long, ends it at once."""
    try:
        warnings.log(ray.get(scheduler.stop.remote(), timeout=STOP_S))
    except (RayActorError, OutOfMemoryError, GetTimeoutError):
        pass
    finally:
        within(STOP_S, lambda: ray.kill(scheduler))
