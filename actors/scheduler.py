"""The scheduler actor: it carries out programs, one after another, each with a pool of the same workers."""

import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from actors.actors import Actors
from actors.cluster import RayPool
from actors.placement import Placement, within
from actors.pool import JobFailed
from actors.process import state_of_process

STOP_S = 10.0  # seconds that the scheduler may take to end an interrupted run

Program = Callable[[Any], Iterator[Any]]  # takes a pool, and yields what the caller sees as the run goes on


class Scheduler:
    """The scheduler actor. It is not detached: it and its workers end when the process that started them does."""

    def __init__(
        self,
        name: str,
        placement: Placement,
        patience_s: float | None,
        environment: Mapping[str, str],
        wait_s: float,
    ) -> None:
        self._actors = Actors(name, placement, environment)
        self._patience_s, self._wait_s = patience_s, wait_s
        self._state: Any = None  # of the process, before its first program ran
        self._pool: RayPool | None = None  # of the program that runs
        self._warnings: list[str] = []  # of the last pool
        self._in_order = False  # whether the last program left no doubt that another may follow
        self._stopped = self._over = 0  # the last program that is to be interrupted, and the last that has ended
        self._changed = threading.Condition()

    def run(self, program: Program, run: str, number: int) -> Iterator[Any]:
        """Runs a program and yields what it yields. A JobFailed is yielded, not raised, because Ray would wrap it.

        run: its name. number: counts the programs, from 1.
        """
        self._state = self._state or state_of_process()
        self._in_order = False
        self._pool = pool = RayPool(self._actors, self._patience_s, self._wait_s)
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
        """Answers a ping, with all warnings of the last run so far. It runs in a thread of its own, as `stop`."""
        return self._warnings.copy()

    def stop(self, number: int) -> tuple[bool, list[str]]:
        """Interrupts a program and waits until it has ended. Returns whether another may follow, and all warnings."""
        self._stopped = number  # it may not have begun
        if pool := self._pool:
            pool.interrupt()
        with self._changed:
            self._changed.wait_for(lambda: self._over >= number)
        return self._in_order, self.answer()
