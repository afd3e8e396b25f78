"""An observer."""

from __future__ import annotations

from raysim.engine.progress import Progress
from raysim.observers import Observer, RunEnd


class Tally(Observer):
    """Prints how often it was told of progress."""

    name: str = "outside_tally"
    _told: int = 0

    def progress(self, progress: Progress) -> None:
        self._told += 1

    def end(self, end: RunEnd) -> None:
        print(f"told {self._told} times until it was {end.status}")
