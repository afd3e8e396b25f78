"""The engine's loop: follows a timeline, hands out its jobs ahead of time, writes what comes back in its order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Generic

from actors import Pool
from raysim.engine.family import Happening, Simulation, Waiting
from raysim.engine.progress import Mark, Progress, Stopwatch

PROGRESS_S = 0.1  # wall seconds between two tellings, unless models were evaluated


class Loop(Generic[Happening, Waiting]):
    """Iterate over it for Progress, while it carries out a simulation. Raises JobFailed where a job does."""

    def __init__(
        self, simulation: Simulation[Happening, Waiting], pool: Pool, totals: Counter[str], rounds: int
    ) -> None:
        """totals: of what was recorded, which the simulation keeps up to date. rounds: of the whole run."""
        self._simulation, self._pool = simulation, pool
        self._teller = Teller(simulation.stopwatch, totals, rounds)
        self._queue: deque[tuple[Happening, Waiting | None]] = deque()  # handed out, and not yet written

    def __iter__(self) -> Iterator[Progress]:
        for happening in self._simulation.happenings():
            self._queue.append((happening, self._simulation.hand_out(happening)))
            yield from self._write(self._simulation.ahead)
        yield from self._write(0)

    def _write(self, ahead: int) -> Iterator[Progress]:
        """Writes what is done at the head of the queue, until at most `ahead` jobs of it are not."""
        while True:
            while self._queue and not _undone(self._queue[0][1]):
                if mark := self._simulation.record(*self._queue.popleft()):
                    yield from self._tell(mark)
            if sum(_undone(pending) for _, pending in self._queue) <= ahead:
                return
            self._pool.wait()

    def _tell(self, mark: Mark) -> Iterator[Progress]:
        if progress := self._teller.progress(mark):
            self._pool.gauge(
                {
                    "round": progress.round,
                    "virtual_time": progress.virtual_time,
                    "in_flight": progress.in_flight,
                    "updates": progress.used,
                    **progress.metrics,
                }
            )
            yield progress


def _undone(pending: Waiting | None) -> int:
    return pending.undone if pending else 0


class Teller:
    """Decides which marks are told, and remembers the last evaluation."""

    def __init__(self, stopwatch: Stopwatch, totals: Counter[str], rounds: int) -> None:
        self._stopwatch, self._totals, self._rounds = stopwatch, totals, rounds
        self._metrics: dict[str, float] = {}
        self._evaluated: int | None = None  # rounds that were over then
        self._told = -PROGRESS_S  # seconds on the stopwatch

    def progress(self, mark: Mark) -> Progress | None:
        """What to tell at a mark; None: nothing, for something was told just before."""
        seconds = self._stopwatch.seconds
        if mark.metrics is not None:
            self._metrics, self._evaluated = mark.metrics, mark.round
        elif seconds - self._told < PROGRESS_S:
            return None
        self._told = seconds
        return Progress(
            round=mark.round,
            rounds=self._rounds,
            virtual_time=mark.virtual_time,
            steps=self._totals["steps"],
            in_flight=mark.in_flight,
            used=self._totals["used"],
            seconds=seconds,
            evaluated=self._evaluated,
            metrics=self._metrics,
        )
