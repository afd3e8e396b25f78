"""Several runs at a time: on a Ray cluster, as far as it has room, or in processes of this machine."""

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from actors import Child, ChildDied
from raysim.engine.progress import Progress
from raysim.observers.observer import Callback, Observer
from raysim.parts.errors import RunFailed, StopRun
from raysim.runs.continuing import going_on
from raysim.runs.execution import Execution
from raysim.runs.launch import carry_out, execution_of, launch
from raysim.runs.observing import NewRows, Observing
from raysim.runs.origin import Origin
from raysim.runs.place import RunPlace, WithoutRay, demand_of
from raysim.runs.result import Result
from raysim.scenario import Scenario
from results import this_process
from results.info import Status

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST_THREADS = 64  # threads that wait for runs on a cluster


class Slots:
    """Runs scenarios from several threads, in one place: a Ray cluster, as far as it has room, or processes of this
    machine, each of which takes one run after another.

    On Ray, runs that wait for room do not start once the others are interrupted; those that continue end at their next
    progress.
    """

    def __init__(self, size: int, parallel: int | None, *, inline: bool) -> None:
        """size: number of threads, each of which waits for one run at a time. parallel: number of runs at a time; None:
        as many as there is room for."""
        self._size = size
        self._stopping = threading.Event()  # set when all runs are to end
        self._children = [Child(_run_here) for _ in range(size)] if inline else []
        self._free: queue.SimpleQueue[Child] = queue.SimpleQueue()
        for child in self._children:
            self._free.put(child)
        if not inline:
            from actors.session import Budget

            self._budget = Budget(parallel)

    def run(
        self, scenario: Scenario, out: Path, observers: Sequence[Observer], before: Path | None, label: str
    ) -> Result:
        """Runs a scenario once there is room. before: the folder of a run of it that is to continue; None: a new one.

        observers: those of this run. label: the name by which they show it. Raises what `raysim.run` does, and
        KeyboardInterrupt after `each` or an observer was interrupted.
        """
        self._stop_with_others()
        together = Callback(lambda progress: self._stop_with_others())
        observing = Observing(scenario, [together, *observers], sweep=out.name, label=label)
        make = partial(execution_of, scenario, out, before)
        try:
            if self._children:
                execution = replace(make(), tables=observing.tables, facts=observing.facts)
                with observing.run(execution.folder):
                    self._run_here(execution, observing)
                return Result(execution.folder)

            def on_ray() -> Result:
                self._stop_with_others()
                with going_on(before, scenario):
                    return launch(scenario, make, RunPlace(), observing)

            return self._budget.spend(demand_of(scenario), on_ray)
        except SystemExit:  # Rich raises it if nobody reads its output, as with `| head`; it would end this run only
            raise KeyboardInterrupt from None
        except RunFailed:
            self._stop_with_others()  # the interruption made it fail
            raise

    def _run_here(self, execution: Execution, observing: Observing) -> None:
        """Runs in a process of this machine, once one is free."""

        def answer(news: Progress | NewRows) -> BaseException | None:
            """Returns the exception that is to end the run, if any."""
            try:
                observing.take(news)
            except StopRun as stop:
                return stop
            except (KeyboardInterrupt, SystemExit):
                self._stopping.set()
                return KeyboardInterrupt()  # which ends the child process
            return None

        scenario, child = execution.scenario, self._free.get()
        try:
            child.call((execution, Origin.known_for(scenario)), answer)
        except ChildDied as death:
            if self._stopping.is_set():  # the process had just begun
                execution.settle(Status.INTERRUPTED)
                raise KeyboardInterrupt from None
            execution.settle(Status.FAILED, str(death))
            raise RunFailed(scenario.name, str(death), folder=execution.folder) from None
        finally:
            self._free.put(child)

    def _stop_with_others(self) -> None:
        if self._stopping.is_set():
            raise KeyboardInterrupt from None

    def each(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> Iterator[tuple[Item, Answer]]:
        """Calls the function with each item, in threads, and yields each item with its answer, in the order in which
        they come.

        The first exception of any item ends all runs, and so does closing the iterator.
        """
        with ThreadPoolExecutor(self._size) as threads:
            futures: dict[Future[Answer], Item] = {threads.submit(function, item): item for item in items}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                self._stopping.set()
                for child in self._children:
                    child.interrupt()
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def close(self) -> None:
        """Ends all processes that are left. On Ray, every run ends its own actors."""
        for child in self._children:
            child.close()


@contextmanager
def open_slots(
    scenarios: Sequence[Scenario], *, inline: bool, address: str | None, parallel: int | None
) -> Iterator[Slots]:
    """Opens slots for runs that ask for as much as the given scenarios, and closes them at the end of the block.

    parallel: number of runs at a time; None: as many as there is room for, but at least one. Raises
    actors.MissingResources if there is no cluster.
    """
    if inline:
        threads = max(scenario.resources.threads for scenario in scenarios)
        size = min(parallel or max((os.cpu_count() or 1) // threads, 1), len(scenarios))
    else:
        RunPlace(address=address).connect(scenarios, parallel or 1)
        size = min(parallel or len(scenarios), MOST_THREADS)
    with closing(Slots(size, parallel, inline=inline)) as slots:
        yield slots


def _run_here(order: tuple[Execution, Origin], tell: Callable[[Progress | NewRows], BaseException | None]) -> None:
    """Carries out a run in a child process. tell: returns the exception that is to end the run, if any."""
    execution, origin = order

    def take(news: Progress | NewRows) -> None:
        if stop := tell(news):
            raise stop

    execution = replace(execution, holder=this_process())
    with going_on(execution.folder if execution.goes_on else None, execution.scenario):
        carry_out(execution, WithoutRay(), take, origin)
