"""The base of observers, and what they are told."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from raysim.engine.progress import Progress
from raysim.parts.part import Part


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
