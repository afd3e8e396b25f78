"""When a signal may end a run in this process.

It may end it in the middle of a job, because jobs change nothing that the run keeps. Between jobs, the run counts and
writes their results, and must not be interrupted, or rows and totals would differ. A handler of signals calls `ask`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_state = {"deferred": False, "asked": False}  # one for the process, because signals reach its main thread


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
        _state.update(deferred=before, asked=False)  # the run ends with this exception anyway
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
