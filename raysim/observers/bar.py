"""Progress in a terminal, where a line can be overwritten."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from raysim.engine.progress import Progress
from raysim.observers.lines import describe
from raysim.observers.observer import Observer, RunBegin, RunEnd


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
