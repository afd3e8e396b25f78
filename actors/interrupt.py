"""When a signal may end a run that goes on in this process.

It may in the middle of a job, because jobs change nothing that the run keeps, but not between jobs, where the run
counts and writes what they returned: else rows and totals would differ. A handler of signals calls `ask`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_state = {"deferred": False, "asked": False}  # signals reach the main thread of a process, so there is one for each


def ask() -> None:
    """Raises KeyboardInterrupt: at once, or at the next job or the end of the block if a block defers it."""
    if not _state["deferred"]:
        raise KeyboardInterrupt
    _state["asked"] = True


@contextmanager
def deferring() -> Iterator[None]:
    """Defers interruptions within the block, except in jobs."""
    before, _state["deferred"] = _state["deferred"], True
    try:
        yield
    except BaseException:
        _state.update(deferred=before, asked=False)  # the run ends anyway
        raise
    _state["deferred"] = before
    _raise_if_asked()


@contextmanager
def allowing() -> Iterator[None]:
    """Lets interruptions through within the block, which is a job."""
    before, _state["deferred"] = _state["deferred"], False
    try:
        _raise_if_asked()
        yield
    finally:
        _state["deferred"] = before


def _raise_if_asked() -> None:
    if _state["asked"]:
        _state["asked"] = False
        raise KeyboardInterrupt
