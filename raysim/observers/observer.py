"""The base of observers, and what they are told; and those that show progress: bars in a terminal, and elsewhere lines,
which notebooks, logs and files can keep."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from raysim.engine.progress import Progress
from raysim.parts.part import NonNegative, Part
from results.texts import Terminal


class RunBegin(NamedTuple):
    """The run that an observer is about to see, as `begin` gets it."""

    run: str  # the run's id, which is the name of its folder
    folder: Path  # where it writes
    scenario: dict[str, Any]  # all keys as plain data, with defaults filled in
    round: int  # rounds that are over already, of a run that continues from a checkpoint; else 0
    steps: int  # server steps that are done already; with peers, rounds
    sweep: str | None  # name of the sweep that the run belongs to, which is that of its folder; None: a run alone
    label: str  # how displays call the run: in a sweep by what tells it from the others, else by its scenario's name


class RunEnd(NamedTuple):
    """How a run ended, as `end` gets it."""

    status: str  # finished, stopped, diverged, failed or interrupted
    why: str | None  # why it failed or ended early, or what was not finite; None if it went to its end
    progress: Progress | None  # the last one; None if the run ended before its first
    info: dict[str, Any]  # the content of run.json, such as its totals and its digest


class Observer(Part):
    """Follows the progress of a run. A subclass defines the methods that it needs; the others do nothing.

    Observers are called in the process that starts the run or the sweep, one call after another; on Ray, too, so that
    they may hold open files and connections of that process. The numbers of a run do not depend on them: its scheduler
    continues while they work, and its news wait for them. Dry runs, and runs that are over already, have no observers.

    Its keys in a scenario are fields, as those of every part, and its state is in fields with an underscore, such as
    `_file: Any = None`. Each run of a sweep has its own observer, see `for_run`.

    An observer that raises an exception ends no run: the run warns of it once, and continues; one whose `begin` fails
    is not called again. But StopRun ends the run, with the status "stopped", and so does KeyboardInterrupt, as Ctrl-C.
    """

    @property
    def title(self) -> str:
        """Its name in warnings: `name` or, if it has none, the name of its class."""
        return str(vars(self).get("name", type(self).__name__))

    @property
    def tables(self) -> Collection[str]:
        """The tables whose new rows it wants, such as ("evaluations", "steps"). Only these are sent here."""
        return ()

    def problems(self) -> Iterator[str]:
        """Yields why it could not do its work here, such as a package that is missing. A run does not start then."""
        yield from ()

    def for_run(self) -> Self:
        """Returns the observer of one run of several. By default, it is a copy of this one, with its state."""
        return self.model_copy(deep=True)

    def begin(self, run: RunBegin) -> None:
        """Called once, before anything else, when the run has a folder. A fork begins with what it does again."""

    def progress(self, progress: Progress) -> None:
        """Called when rounds are over: after each evaluation, and else ten times a second at most."""

    def rows(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Called with the rows of a table that are new since the last call, in the order of the table.

        rows: each has its values by column, without the run's id; columns that are missing are null, and an algorithm's
        own are among the others. A run that continues from a checkpoint writes the rows since then again, and they come
        again.
        """

    def end(self, end: RunEnd) -> None:
        """Called once, after everything else, when the run's files are written."""


Watcher: TypeAlias = Observer | Callable[[Progress], Any]
"""What Python code may give as an observer."""


class Callback(Observer):
    """Calls a function with a run's progress."""

    _function: Callable[[Progress], Any]

    def __init__(self, function: Callable[[Progress], Any]) -> None:
        super().__init__()
        self._function = function

    @property
    def title(self) -> str:
        return getattr(self._function, "__qualname__", repr(self._function))

    def progress(self, progress: Progress) -> None:
        self._function(progress)


# --- showing progress -------------------------------------------------------------------------------------------------


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
