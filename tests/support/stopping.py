"""Runs that are stopped."""

from collections.abc import Callable
from typing import Any

from raysim import StopRun


def stop_after(rounds: int) -> Callable[[Any], None]:
    """An observer that ends a run once so many rounds are over."""

    def stop(progress: Any) -> None:
        if progress.round >= rounds:
            raise StopRun("enough")

    return stop
