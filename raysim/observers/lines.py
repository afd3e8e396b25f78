"""Progress as plain lines, for logs of jobs and for files, where no line can be overwritten."""

import time
from datetime import timedelta
from typing import Any

from raysim.engine.progress import Progress
from raysim.observers.observer import Observer, RunBegin
from raysim.parts.part import NonNegative
from results.terminal import Terminal


class Lines(Observer):
    """Prints a line of progress when a run ends its first round, and from then on at most one in `every_s`."""

    name: str = "lines"
    every_s: NonNegative = 10.0
    """Least wall seconds between two lines."""
    _console: Any = None
    _label: str = ""
    _first: Progress | None = None
    _printed: float = 0.0  # when the last line was printed

    def begin(self, run: RunBegin) -> None:
        self._console, self._label = Terminal(), run.label

    def progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._first and now - self._printed < self.every_s:
            return
        self._first, self._printed = self._first or progress, now
        end = f"  {left}" if (left := _left(self._first, progress)) else ""
        of_all = "" if progress.rounds is None else f" of {progress.rounds}"
        line = f"{self._label}  round {progress.round}{of_all}  {describe(progress)}{end}"
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)


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
