"""Progress of runs: bars in a terminal, and elsewhere lines, which notebooks, logs and files can keep."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from raysim.engine.progress import Progress
from raysim.observers.observer import Observer, RunBegin, RunEnd
from raysim.parts.part import NonNegative
from results.texts import Terminal


class Shown(NamedTuple):
    """What shows the progress of runs."""

    observers: list[Observer]  # for one run, or each of several
    over: Callable[[], Any]  # to be called when one of several runs is over


@contextmanager
def showing(wanted: bool, runs: int | None = None) -> Iterator[Shown]:
    """Shows progress within the block, on standard error.

    wanted: whether anything is to be shown. runs: how many there are to be; None: one, which is no sweep.
    """
    if not wanted:
        yield Shown([], lambda: None)
    elif sys.stderr.isatty():
        with bars(Terminal(stderr=True), transient=False) as display:
            if runs is None:
                yield Shown([Bar(display, kept=True)], lambda: None)
            else:
                line = display.add_task("[bold]runs", total=runs, state="")
                yield Shown([Bar(display)], lambda: display.advance(line))
    else:
        yield Shown([LateLines()], lambda: None)


def bars(console: Console, *, transient: bool) -> Bars:
    """Returns an empty display of bars. transient: whether its lines go in the end."""
    columns = TextColumn("{task.description}"), MofNCompleteColumn(), TextColumn("{task.fields[state]}")
    # No column is a bar, because all of this must fit in 80 columns.
    return Bars(*columns, TimeElapsedColumn(), console=console, transient=transient)


class Bar(Observer):
    """Shows how far a run is in one line of a display."""

    _bars: Bars
    _line: TaskID | None
    _kept: bool  # whether the line stays when the run is over

    def __init__(self, bars: Bars, line: TaskID | None = None, *, kept: bool = False) -> None:
        """line: a line that the display has already, and keeps after the run. None: a line is added when the run
        begins, and removed when it ends unless `kept`."""
        super().__init__()
        self._bars, self._line, self._kept = bars, line, kept or line is not None

    def for_run(self) -> Bar:
        return Bar(self._bars)

    def begin(self, run: RunBegin) -> None:
        if self._line is None:
            rounds = run.scenario["run"]["rounds"]
            self._line = self._bars.add_task(escape(run.label), total=rounds, state="starting")

    def progress(self, progress: Progress) -> None:
        assert self._line is not None
        self._bars.update(self._line, completed=progress.round, state=describe(progress))

    def end(self, end: RunEnd) -> None:
        if self._line is not None and not self._kept:
            self._bars.remove_task(self._line)


class Lines(Observer):
    """Prints a line of progress when a run ends its first round, and from then on at most one in `every_s`."""

    name: str = "lines"
    every_s: NonNegative = 10.0
    """Least wall seconds between two lines."""
    _console: Any = None
    _label: str = ""
    _first: Progress | None = None  # of the first line
    _printed: float = -math.inf  # when the last line was printed

    def begin(self, run: RunBegin) -> None:
        self._console, self._label = Terminal(), run.label

    def progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._printed < self.every_s:
            return
        self._first, self._printed = self._first or progress, now
        end = f"  {left}" if (left := _left(self._first, progress)) else ""
        of_all = "" if progress.rounds is None else f" of {progress.rounds}"
        line = f"{self._label}  round {progress.round}{of_all}  {describe(progress)}{end}"
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)


class LateLines(Lines):
    """Prints lines on standard error, the first after `every_s`, so that short runs print nothing."""

    def begin(self, run: RunBegin) -> None:
        self._console, self._label, self._printed = Terminal(stderr=True), run.label, time.monotonic()


def describe(progress: Progress) -> str:
    """Returns the state of a run as a short text: virtual time, accuracy or loss, clients in flight, and speed."""
    metrics = [f"{name} {progress.metrics[name]:.4g}" for name in ("accuracy", "loss") if name in progress.metrics]
    speed = progress.used / progress.seconds if progress.seconds else 0.0
    flying = [f"{progress.in_flight} in flight"] if progress.in_flight else []
    return "  ".join([f"t={progress.virtual_time:.6g}", *metrics[:1], *flying, f"{speed:.0f} updates/s"])


def _left(first: Progress, now: Progress) -> str:
    """Returns the expected time until the end, if the rounds to come take as long as those since the first line."""
    if now.round == first.round or now.rounds is None:
        return ""
    seconds = (now.seconds - first.seconds) / (now.round - first.round) * (now.rounds - now.round)
    return f"{timedelta(seconds=round(seconds))} left"
