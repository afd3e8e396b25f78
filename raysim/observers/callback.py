"""A function of progress as an observer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from raysim.engine.progress import Progress
from raysim.observers.observer import Observer

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
