"""Shows a single run on the command line: first its progress, then its summary."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.markup import escape

from raysim.observers import Lines, Observer
from raysim.observers.live import Bar, bars
from raysim.runs.place import RunPlace
from raysim.runs.result import Result
from raysim.scenario import Scenario
from results import summary
from results.texts import Terminal


def watch(scenario: Scenario, start: Callable[[Observer], Result], place: RunPlace, *, dry: bool = False) -> Result:
    """Shows the progress of a run, then its summary and where its folder is, and returns its result.

    start: runs the scenario; gets the observer that shows it. place: where it runs.
    """
    console, state = Terminal(), f"starting in {place}"
    with _telling(console), bars(console, transient=dry) if console.is_interactive else nullcontext() as shown:
        if shown:
            line = shown.add_task(f"[bold]{escape(scenario.name)}", total=scenario.run.rounds, state=state)
            result = start(Bar(shown, line))
        else:
            console.print(f"{escape(scenario.name)}  {state}", soft_wrap=True, highlight=False)
            result = start(Lines())
    console.print(summary(result.run))
    console.print(f"results in [bold]{escape(str(result.folder))}", soft_wrap=True, highlight=False)
    return result


def hint(text: str | None) -> None:
    """Prints what would have been sooner, if anything."""
    if text:
        Terminal().print(f"[dim]{text}[/]", soft_wrap=True, highlight=False)


def exit_code(result: Result) -> int:
    """Returns the exit code of a command that carried out this run: 3 if it diverged."""
    return 3 if result.run.status == "diverged" else 0


@contextmanager
def _telling(console: Console) -> Iterator[None]:
    """Within the block, what runs log is printed: information to the console, and warnings to standard error."""
    log, printing = logging.getLogger("raysim"), _Printing(console)
    before = log.level
    log.addHandler(printing)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(printing)


class _Printing(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            print(record.getMessage(), file=sys.stderr)
        else:
            self._console.print(escape(record.getMessage()), soft_wrap=True, highlight=False)
