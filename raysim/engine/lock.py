"""A lock on a run's folder, so that one process at a time writes there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raysim.errors import CannotGoOn


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[bool]:
    """Within the block, no other process writes a run into the folder, and this one may; shared: it only reads.

    Gives False where the file system has no locks. The system releases the lock of a process that was killed. Raises
    CannotGoOn if another process holds it.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield _lock(handle, folder, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        cure = "wait for its end, or end it (`raysim show` names it)"
        raise CannotGoOn(f"{folder}: must be a run that has ended, but a process is at work on it; {cure}") from None
    except OSError:
        return False
    return True
