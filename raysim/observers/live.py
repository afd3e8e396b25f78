"""Progress of runs: bars in a terminal or a notebook, and a line every ten seconds elsewhere."""

from __future__ import annotations

import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape, render
from rich.progress import MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from raysim.engine.progress import Progress
from raysim.observers.lines import Lines, describe
from raysim.observers.observer import Observer, RunBegin, RunEnd
from results.terminal import Terminal

_EVERY_S = 0.2  # least wall seconds between two changes of a notebook's output


class Shown(NamedTuple):
    """What shows how runs go on."""

    observers: list[Observer]  # for one run, or each of several
    over: Callable[[], Any]  # to be called when one of several runs is over


@contextmanager
def showing(wanted: bool, runs: int | None = None) -> Iterator[Shown]:
    """Shows progress within the block, on standard error or in a notebook's output.

    wanted: whether anything is to be shown. runs: how many there are to be; None: one, which is no sweep.
    """
    if not wanted:
        yield Shown([], lambda: None)
    elif in_notebook():
        with NotebookBars() as display:
            yield _on_bars(display, runs)
    elif sys.stderr.isatty():
        with bars(Terminal(stderr=True), transient=False) as terminal:
            yield _on_bars(terminal, runs)
    else:
        yield Shown([LateLines()], lambda: None)


def in_notebook() -> bool:
    """Tells whether the program is run by a notebook, or by what shows its output as one does."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def _on_bars(display: Any, runs: int | None) -> Shown:
    if runs is None:
        return Shown([Bar(display, kept=True)], lambda: None)
    line = display.add_task("[bold]runs", total=runs, state="")
    return Shown([Bar(display)], lambda: display.advance(line))


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


class LateLines(Lines):
    """Prints lines on standard error, the first after `every_s`, so that short runs print nothing."""

    _began: float = 0.0

    def begin(self, run: RunBegin) -> None:
        self._console, self._label, self._began = Terminal(stderr=True), run.label, time.monotonic()

    def progress(self, progress: Progress) -> None:
        if time.monotonic() - self._began >= self.every_s:
            super().progress(progress)


class NotebookBars:
    """Bars in the output of a notebook's cell, with the methods of rich's display that `Bar` calls.

    It needs no widgets: the output is replaced by a new one a few times a second.
    """

    def __init__(self) -> None:
        from IPython.display import DisplayHandle

        self._handle, self._lock = DisplayHandle(), threading.Lock()
        self._lines: dict[int, dict[str, Any]] = {}
        self._number, self._shown = 0, 0.0

    def __enter__(self) -> NotebookBars:
        self._handle.display({"text/html": ""}, raw=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._show(at_once=True)

    def add_task(self, description: str, *, total: float | None, state: str) -> int:
        """Adds a line, and returns its number. description: as rich's markup. total: None if it is not known."""
        self._number += 1
        self._lines[self._number] = {"text": str(render(description)), "done": 0, "total": total, "state": state}
        self._show()
        return self._number

    def update(self, line: int, *, completed: float, state: str) -> None:
        """Changes how far a line is."""
        self._lines[line] |= {"done": completed, "state": state}
        self._show()

    def advance(self, line: int) -> None:
        """Moves a line on by one."""
        self._lines[line]["done"] += 1
        self._show()

    def remove_task(self, line: int) -> None:
        """Takes a line away."""
        del self._lines[line]
        self._show()

    def _show(self, *, at_once: bool = False) -> None:
        with self._lock:  # runs of a sweep are shown from several threads
            now = time.monotonic()
            if at_once or now - self._shown >= _EVERY_S:
                self._shown = now
                self._handle.update({"text/html": "".join(map(_line, list(self._lines.values())))}, raw=True)


def _line(line: dict[str, Any]) -> str:
    total = line["total"]
    bar = "" if total is None else f'<progress value="{line["done"]}" max="{total}"></progress> '
    of_all = f"{line['done']}" if total is None else f"{line['done']}/{total}"
    words = "  ".join(filter(None, (line["text"], of_all, line["state"])))
    return f'<div style="font-family: monospace; white-space: pre">{bar}{html.escape(words)}</div>'
