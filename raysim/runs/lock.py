"""A lock on a run's folder, so that one process at a time writes there."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from raysim.parts.errors import CannotGoOn
from results import Run, this_process
from results.disk import writing
from results.location import create, is_local, time_of
from results.reader import SILENT
from results.writing_process import state

HELD = ".held.json"  # on an object store: names the process that writes a run there


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[bool]:
    """Within the block, this process alone writes a run into the folder; shared: it only reads, and nobody writes.

    Yields False where the file system has no locks. The system releases the lock of a process that was killed. Raises
    CannotGoOn if another process holds the lock.

    On an object store, the lock is an object that names its process. That of a killed one stays. The next process on
    its machine takes it over, and one on another machine once nothing has been written for ten minutes by the clock of
    the store. There, a shared lock keeps nobody from writing.
    """
    if is_local(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            yield _lock(handle, folder, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        finally:
            os.close(handle)
    elif shared:
        yield False
    else:
        held, me = folder / HELD, json.dumps(this_process()).encode()
        _hold(folder, me)
        try:
            yield True
        finally:
            with suppress(FileNotFoundError):
                if held.read_bytes() == me:  # else another process has taken the run over
                    held.unlink(missing_ok=True)


def _lock(handle: int, folder: Path, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _at_work(folder) from None
    except OSError:
        return False
    return True


def _hold(folder: Path, me: bytes) -> None:
    held = folder / HELD
    with writing(folder):
        if create(held, me):
            return
    try:
        found = state(json.loads(held.read_bytes()))
        written = max(held.stat().st_mtime, Run(folder).last_written.timestamp())
    except FileNotFoundError:  # the lock was released in between
        return _hold(folder, me)
    if found == "alive" or (found == "unknown" and time_of(folder) - written <= SILENT.total_seconds()):
        raise _at_work(folder)
    held.write_bytes(me)


def _at_work(folder: Path) -> CannotGoOn:
    cure = "wait for its end, or end it (`raysim show` names it)"
    return CannotGoOn(f"{folder}: must be a run that has ended, but a process is at work on it; {cure}")
