"""Shows a single run on the command line: first its progress, then its summary."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.markup import escape

from raysim.observers import Lines, Observer
from raysim.observers.live import Bar, bars
from raysim.observers.observer import RunBegin
from raysim.parts.errors import RunFailed
from raysim.runs.place import RunPlace
from raysim.runs.result import Result
from raysim.scenario import Scenario
from results import summary
from results.terminal import Terminal
from results.texts import count


def watch(
    scenario: Scenario,
    start: Callable[[Observer], Result],
    place: RunPlace,
    *,
    label: str | None = None,
    dry: bool = False,
) -> Result:
    """Shows the progress of a run, then its summary and where its folder is, and returns its result.

    start: runs the scenario; gets the observer that shows it. place: where it runs. label: how its
    lines begin; by default with the scenario's name.
    """
    console, label = Terminal(), label or scenario.name
    with _telling(console), bars(console, transient=dry) if console.is_interactive else nullcontext() as shown:
        state = f"starting in {place}"
        if shown:
            name = f"[bold]{escape(label)}"
            result = start(Bar(shown, shown.add_task(name, total=scenario.run.rounds, state=state)))
        else:
            console.print(f"{escape(label)}  {state}", soft_wrap=True, highlight=False)
            result = start(_Labelled(label))
    console.print(summary(result.run))
    console.print(f"results in [bold]{escape(str(result.folder))}", soft_wrap=True, highlight=False)
    return result


class _Labelled(Lines):
    """Lines that begin with a label of the command's."""

    _own: str

    def __init__(self, label: str) -> None:
        super().__init__()
        self._own = label

    def begin(self, run: RunBegin) -> None:
        super().begin(run._replace(label=self._own))


def sum_up(labels: Sequence[str], ends: Sequence[Result | Exception]) -> None:
    """Prints how each of several runs ended: the folder of its results, or why it failed."""
    console = Terminal(highlight=False)
    failed = sum(isinstance(end, Exception) for end in ends)
    console.print(f"\n{count(len(ends), 'run')}, {failed} failed")
    for label, end in zip(labels, ends, strict=True):
        if isinstance(end, Exception):
            where = end.folder if isinstance(end, RunFailed) else None
            text = f"[red]failed[/] {escape(str(end))}" + (f" (in {escape(str(where))})" if where else "")
        else:
            text = f"{end.run.status} in {escape(str(end.folder))}"
        console.print(f"  {escape(label)}: {text}", soft_wrap=True)


def hint(text: str | None) -> None:
    """Prints what would have been sooner, if anything."""
    if text:
        Terminal().print(f"[dim]{text}[/]", soft_wrap=True, highlight=False)


def exit_code(*ends: Result | Exception) -> int:
    """Returns the exit code of a command that carried out these runs: 1 if one failed, else 3 if one diverged."""
    if any(isinstance(end, Exception) for end in ends):
        return 1
    return 3 if any(isinstance(end, Result) and end.run.status == "diverged" for end in ends) else 0


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
