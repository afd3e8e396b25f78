"""The engine's loop: it follows a timeline, submits its jobs ahead of time, and writes results in timeline order."""

from collections import deque
from collections.abc import Iterator
from typing import Generic

from actors import Pool
from raysim.engine.progress import Mark, Progress, when
from raysim.engine.recorder import Recorder
from raysim.engine.saver import Saver
from raysim.engine.simulation import Change, HappeningT, PendingT, Simulation
from raysim.workers.workshop import CLIENT

JOBS_AHEAD = 6  # jobs that may be submitted and not yet done, for each client actor: more keep all of them busy, fewer
# keep fewer model versions and updates in memory
PROGRESS_S = 0.1  # least wall seconds between two reports of progress, unless models were evaluated


class Loop(Generic[HappeningT, PendingT]):
    """Carries out a simulation while one iterates over it, and yields Progress. Raises JobFailed if a job fails.

    If the recorder says that the run's budget is spent, it ends the run with what was written last. Jobs that were
    submitted ahead are then for nothing.
    """

    def __init__(
        self,
        simulation: Simulation[HappeningT, PendingT],
        pool: Pool,
        saver: Saver,
        recorder: Recorder,
        rounds: int | None,
    ) -> None:
        """recorder: counts what happens during the run. rounds: how many the whole run has; None if not known."""
        self._simulation, self._pool, self._saver, self._recorder = simulation, pool, saver, recorder
        self._goes_on = True  # whether the timeline may have happenings that are not handed out
        self._rounds = rounds
        self._metrics: dict[str, float] = {}  # of the last evaluation
        self._evaluated: int | None = None  # rounds that were over at the last evaluation
        self._told = -PROGRESS_S  # when progress was last reported, in seconds on the stopwatch
        self._queue: deque[tuple[HappeningT, PendingT | None, Change]] = deque()  # submitted, not yet written

    def __iter__(self) -> Iterator[Progress]:
        if self._recorder.budget.ended_by:  # by the time of the checkpoint from which it continues
            self._end()
        while self._goes_on:
            self._goes_on = False
            for happening in self._simulation.happenings():
                self._queue.append((happening, *self._simulation.hand_out(happening)))
                yield from self._write(JOBS_AHEAD * self._pool.size(CLIENT))
                if self._saver.reached:
                    return
            yield from self._write(0)

    def _write(self, ahead: int) -> Iterator[Progress]:
        """Writes happenings from the head of the queue as their jobs get done, until at most `ahead` jobs are left."""
        while True:
            while self._queue and not _undone(self._queue[0][1]) and not self._saver.reached:
                if mark := self._record(*self._queue.popleft()):
                    yield from self._progress(mark)
            if self._saver.reached or sum(_undone(pending) for _, pending, _ in self._queue) <= ahead:
                return
            self._pool.wait()

    def _record(self, happening: HappeningT, pending: PendingT | None, change: Change) -> Mark | None:
        self._saver.before(last=self._simulation.is_last(happening))
        mark = self._simulation.record(happening, pending)
        recorder, metrics = self._recorder, mark.metrics if mark else None
        best = metrics is not None and recorder.best.evaluated(metrics, when(happening))
        if metrics is not None:
            recorder.budget.evaluated(metrics)
        self._saver.after(happening, change, mark, best=best)
        if mark and metrics is not None and not mark.ends and recorder.budget.ended_by:
            self._end()
        return mark

    def _progress(self, mark: Mark) -> Iterator[Progress]:
        """Yields the progress to report at a mark, unless there was a report just before."""
        seconds, recorder = self._simulation.stopwatch.seconds, self._recorder
        if mark.metrics is not None:
            self._metrics, self._evaluated = mark.metrics, mark.round
        elif seconds - self._told < PROGRESS_S:
            return
        self._told = seconds
        totals = dict(recorder.totals)
        yield Progress(
            round=mark.round,
            rounds=self._rounds,
            virtual_time=mark.virtual_time,
            steps=totals["steps"],
            in_flight=mark.in_flight,
            used=totals["used"],
            seconds=seconds,
            evaluated=self._evaluated,
            metrics=self._metrics,
            totals=totals,
            traffic=dict(recorder.traffic),
            staleness=recorder.staleness,
        )

    def _end(self) -> None:
        """Ends the run with what was written last."""
        self._saver.end()
        self._queue.clear()
        self._simulation.end()
        self._goes_on = True


def _undone(pending: PendingT | None) -> int:
    return pending.undone if pending else 0
