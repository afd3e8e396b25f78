"""Progress as plain lines, for logs of jobs and for files, where no line can be overwritten."""

from __future__ import annotations

import time
from datetime import timedelta

from rich.console import Console
from rich.markup import escape

from raysim.engine.progress import Progress

EVERY_S = 10.0


class ProgressLines:
    """Prints a line when a run begins its rounds, and from then on at most one in `EVERY_S` seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._first: dict[str, Progress] = {}  # by run, as displayed: what was told first
        self._printed: dict[str, float] = {}  # by run: when its last line was printed

    def show(self, run: str, progress: Progress) -> None:
        """Tells how far a run is. run: how it is called in the line."""
        first = self._first.setdefault(run, progress)
        now = time.monotonic()
        if now - self._printed.get(run, -EVERY_S) < EVERY_S:
            return
        self._printed[run] = now
        end = f"  {left}" if (left := _left(first, progress)) else ""
        line = f"{run}  round {progress.round} of {progress.rounds}  {describe(progress)}{end}"
        self._console.print(escape(line), soft_wrap=True, highlight=False)


def describe(progress: Progress) -> str:
    """Returns the state of a run as a short text: virtual time, accuracy or loss, clients in flight, and speed."""
    metrics = [f"{name} {progress.metrics[name]:.4g}" for name in ("accuracy", "loss") if name in progress.metrics]
    speed = progress.used / progress.seconds if progress.seconds else 0.0
    flying = [f"{progress.in_flight} in flight"] if progress.in_flight else []
    return "  ".join([f"t={progress.virtual_time:.6g}", *metrics[:1], *flying, f"{speed:.0f} updates/s"])


def _left(first: Progress, now: Progress) -> str:
    """Returns the expected time until the end, if the rounds to come take as long as those since the first line."""
    if now.round == first.round:
        return ""
    seconds = (now.seconds - first.seconds) / (now.round - first.round) * (now.rounds - now.round)
    return f"{timedelta(seconds=round(seconds))} left"
