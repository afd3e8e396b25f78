"""Several runs at a time: on a Ray cluster, as far as it has room, or in processes of this machine."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from actors import Child, ChildDied
from raysim.engine.progress import Progress
from raysim.parts.errors import RunFailed, StopRun
from raysim.runs.execution import Execution
from raysim.runs.machines import pin
from raysim.runs.previous import going_on
from raysim.runs.result import Result
from raysim.runs.run import carry_out, connect, demand_of, launch, new_folder, run
from raysim.scenario import Scenario

if TYPE_CHECKING:
    from actors.placement import Budget

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Watch = Callable[[Progress], None]  # ends the run by raising StopRun or KeyboardInterrupt

MOST_THREADS = 64  # threads that wait for runs on a cluster


class Rooms(Protocol):
    """Where runs are carried out."""

    def run(self, scenario: Scenario, out: Path, watch: Watch, before: Path | None) -> Result:
        """Waits for room and runs the scenario. Many threads may call it. Raises what `raysim.run` does.

        before: the folder of a run of the scenario that ended early, and is to go on; None: a new one.
        """

    def interrupt(self) -> None:
        """Ends the runs that go on, as far as they would not end by themselves at their next progress."""

    def close(self) -> None:
        """Ends all processes that are left."""


class Slots:
    """Runs scenarios from several threads. size: number of threads, each of which waits for one run at a time."""

    def __init__(self, rooms: Rooms, size: int) -> None:
        self._rooms, self._size = rooms, size
        self._stopping = threading.Event()

    def run(self, scenario: Scenario, out: Path, watch: Watch, before: Path | None = None) -> Result:
        """Runs a scenario once there is room. before: the folder of a run of it that is to go on; None: a new one.

        Raises what `raysim.run` does, and KeyboardInterrupt once `each` or a watch was interrupted.
        """
        if self._stopping.is_set():
            raise KeyboardInterrupt

        def guarded(progress: Progress) -> None:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            try:
                watch(progress)
            except KeyboardInterrupt:
                self._stopping.set()
                raise

        try:
            return self._rooms.run(scenario, out, guarded, before)
        except RunFailed:
            if self._stopping.is_set():  # the interruption made it fail
                raise KeyboardInterrupt from None
            raise

    def each(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Calls the function with each item, in threads; returns the answers in order.

        The first exception ends all runs, whichever item it is of.
        """
        with ThreadPoolExecutor(self._size) as threads:
            futures: list[Future[Answer]] = [threads.submit(function, item) for item in items]
            try:
                for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                    future.result()
                return [future.result() for future in futures]
            except BaseException:
                self._stopping.set()
                self._rooms.interrupt()
                threads.shutdown(wait=False, cancel_futures=True)
                raise


@contextmanager
def open_slots(
    scenarios: Sequence[Scenario], *, inline: bool, address: str | None, parallel: int | None
) -> Iterator[Slots]:
    """Opens slots for runs like the given scenarios, and closes them at the end.

    parallel: number of runs at a time; None: as many as there is room for, but at least one. Raises
    actors.MissingResources if there is no cluster.
    """
    rooms: Rooms
    if inline:
        threads = max(scenario.resources.threads for scenario in scenarios)
        size = min(parallel or max((os.cpu_count() or 1) // threads, 1), len(scenarios))
        rooms = ProcessRooms(size)
    else:
        from actors.placement import Budget

        connect(scenarios, address)
        size = min(parallel or len(scenarios), MOST_THREADS)
        rooms = RayRooms(Budget(parallel))
    try:
        yield Slots(rooms, size)
    finally:
        rooms.close()


class ProcessRooms:
    """Carries out each run in a process of this machine, without Ray. A process takes one run after another."""

    def __init__(self, size: int) -> None:
        self._children = [Child() for _ in range(size)]
        self._pinned: dict[Child, str | None] = dict.fromkeys(self._children)
        self._interrupted = False
        self._free: queue.SimpleQueue[Child] = queue.SimpleQueue()
        for child in self._children:
            self._free.put(child)

    def run(self, scenario: Scenario, out: Path, watch: Watch, before: Path | None) -> Result:
        def answer(progress: Progress) -> BaseException | None:
            try:
                watch(progress)
            except (StopRun, KeyboardInterrupt) as stop:
                return stop
            return None

        execution = Execution(scenario, before or new_folder(out, scenario.name), goes_on=before is not None)
        folder = execution.folder
        child = self._free.get()
        try:
            if self._pinned.get(child) != (pinned := scenario.resources.cpu_capability):
                child.close()  # torch cannot change its instruction set once it is loaded
                self._pinned[child] = pinned
            child.call(_run_here, scenario, folder, before is not None, tell=answer)
        except ChildDied as death:
            if self._interrupted:  # the process had just begun
                execution.settle("interrupted")
                raise KeyboardInterrupt from None
            execution.settle("failed", str(death))
            raise RunFailed(scenario.name, str(death), folder=folder) from None
        finally:
            self._free.put(child)
        return Result(folder)

    def interrupt(self) -> None:
        self._interrupted = True
        for child in self._children:
            child.interrupt()

    def close(self) -> None:
        for child in self._children:
            child.close()


def _run_here(
    scenario: Scenario, folder: Path, goes_on: bool, tell: Callable[[Progress], BaseException | None]
) -> None:
    """Runs a scenario in a child process. tell: returns the exception that is to end the run, if any."""

    def watch(progress: Progress) -> None:
        if stop := tell(progress):
            raise stop

    pin(scenario.resources.cpu_capability)
    with going_on(folder, scenario) if goes_on else nullcontext():
        carry_out(Execution(scenario, folder, goes_on=goes_on), None, watch)


class RayRooms:
    """Carries out each run on the cluster, with the actors that its scenario asks for."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._interrupted = False

    def run(self, scenario: Scenario, out: Path, watch: Watch, before: Path | None) -> Result:
        with self._budget.spent(demand_of(scenario)):
            if self._interrupted:  # while this run waited for room
                raise KeyboardInterrupt
            if before is None:
                return run(scenario, out=out, progress=watch)
            execution = Execution(scenario, before, goes_on=True)
            with going_on(before, scenario):
                return launch(scenario, lambda: execution, inline=False, address=None, progress=watch)

    def interrupt(self) -> None:
        """Keeps runs that wait for room from starting. Those that go on end at their next progress."""
        self._interrupted = True

    def close(self) -> None:
        """Does nothing: every run has ended its actors."""
