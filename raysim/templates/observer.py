"""An observer: say here what it is for."""

from typing import Any

from raysim.engine.progress import Progress
from raysim.observers import Observer, RunBegin, RunEnd


class ObserverTemplate(Observer):
    """Writes the metrics of each evaluation to a file of comma-separated values in the run's folder."""

    name: str = "template"
    file: str = "metrics.csv"
    """Name of the file."""
    _stream: Any = None  # what it remembers is in fields with an underscore, and each run has its own observer

    def begin(self, run: RunBegin) -> None:
        self._stream = (run.folder / self.file).open("a")

    def progress(self, progress: Progress) -> None:
        if progress.evaluated == progress.round:
            print(progress.round, progress.virtual_time, *progress.metrics.values(), sep=",", file=self._stream)

    def end(self, end: RunEnd) -> None:
        self._stream.close()
