"""Informs the observers of a run of its progress and its end."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from actors.fault import describe, frames_of
from raysim.engine.checkpoint import position
from raysim.engine.progress import Progress
from raysim.observers.live import showing
from raysim.observers.observer import Callback, Observer, RunBegin, RunEnd, Watcher
from raysim.parts.errors import Problem, ScenarioError, StopRun
from raysim.scenario import Scenario
from raysim.scenario.load import no_faults
from results.info import why_early
from results.schemas import require

_log = logging.getLogger("raysim")


class NewRows(NamedTuple):
    """New rows of a table, on their way to observers."""

    table: str
    rows: list[dict[str, Any]]


def observers_of(scenario: Scenario, given: Iterable[Watcher] = (), *, one_of_several: bool = False) -> list[Observer]:
    """Returns the observers of one run: those that the scenario names, and the given ones.

    one_of_several: whether the given ones are for other runs, too, so that this one has its own copies.
    Raises ScenarioError if one of them cannot work here.
    """
    found = [observer.for_run() for observer in (*scenario.run.observers, *scenario.run.log)]
    for watcher in given:
        observer = watcher if isinstance(watcher, Observer) else Callback(watcher)
        found.append(observer.for_run() if one_of_several and observer is watcher else observer)
    with no_faults(scenario.name):
        problems = [Problem("", problem) for observer in found for problem in observer.problems()]
    if problems:
        raise ScenarioError(scenario.name, problems)
    return found


class Observing:
    """The observers of one run.

    An exception of an observer does not end the run; the user is warned of it once.
    tables: those whose new rows they want.
    failures: the first exception of each observer, by its id.
    """

    def __init__(
        self, scenario: Scenario, observers: Sequence[Observer], *, sweep: str | None = None, label: str | None = None
    ) -> None:
        """sweep, label: see `RunBegin`. Raises ValueError if an observer wants a table that there is not."""
        self.tables = frozenset(table for observer in observers for table in observer.tables)
        for table in self.tables:
            require(table)
        self._scenario, self._sweep, self._label = scenario, sweep, label or scenario.name
        self._observers = list(observers)
        self.failures: dict[int, str] = {}
        self._folder: Path | None = None  # the folder of the run, once it has begun
        self._progress: Progress | None = None
        self._stop: StopRun | None = None  # the StopRun with which an observer ended the run

    @property
    def facts(self) -> dict[str, Any]:
        """What run.json says of the sweep that the run belongs to, so that the run can be told of again; {} if none."""
        return {"sweep": {"name": self._sweep, "label": self._label}} if self._sweep else {}

    @contextmanager
    def run(self, folder: Path) -> Iterator[None]:
        """Surrounds the run in a folder: tells that it begins, unless that was told before, and then how it ended.

        The first half of a fork, which does again what another run did, is no end.
        """
        try:
            if self._observers and not self._folder:
                self._begin(folder)
            yield
        finally:
            if self._folder:
                self._end(folder / "run.json")

    def take(self, news: Progress | NewRows) -> None:
        """Passes on what a run yields. Raises StopRun if an observer has, after all others were told."""
        if isinstance(news, NewRows):
            self._tell(lambda observer: observer.rows(*news) if news.table in observer.tables else None)
        else:
            self._progress = news
            self._tell(lambda observer: observer.progress(news))
        if self._stop:
            raise self._stop

    def _begin(self, folder: Path) -> None:
        self._folder = folder
        steps, rounds = position(folder)
        resolved = self._scenario.resolved()
        began = RunBegin(folder.name, folder, resolved, rounds, steps, self._sweep, self._label)
        self._tell(lambda observer: observer.begin(began))
        self._observers = [observer for observer in self._observers if id(observer) not in self.failures]

    def _end(self, path: Path) -> None:
        info: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"status": "failed"}
        if info["status"] == "forking":
            return
        ended = RunEnd(info["status"], why_early(info), self._progress, info)
        self._tell(lambda observer: observer.end(ended))

    def _tell(self, call: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                call(observer)
            except StopRun as stop:
                self._stop = self._stop or stop
            except BaseException as error:  # the run continues, whatever an observer raises
                if isinstance(error, KeyboardInterrupt) or not (isinstance(error, Exception) or frames_of(error)):
                    raise  # such as SystemExit of Rich, if nobody reads its output
                if id(observer) not in self.failures:
                    place = "".join(f", at {frame.place}" for frame in frames_of(error)[-1:])
                    self.failures[id(observer)] = f"{observer.title}: {describe(error)}{place}"
                    _log.warning(f"the run continues, but an observer failed: {self.failures[id(observer)]}")


@contextmanager
def watching(scenario: Scenario, given: Sequence[Watcher], progress: bool, **about: str | None) -> Iterator[Observing]:
    """Yields the observers of one run: those of the scenario, the given ones, and what shows its progress.

    progress: whether it is shown. about: see `Observing`.
    """
    with showing(progress) as shown:
        yield Observing(scenario, observers_of(scenario, [*shown.observers, *given]), **about)
