"""Where raysim keeps what makes later runs faster, such as decoded images: it may be deleted at any time."""

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

LIMIT = 20 * 10**9  # bytes of all arrays of a kind; those that were not used for longest are deleted first
_log = logging.getLogger("raysim")


def cache_folder(name: str) -> Path:
    """Returns the folder of one kind of things: in RAYSIM_CACHE if that is set, else in the user's cache folder."""
    given = os.environ.get("RAYSIM_CACHE")
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raysim"
    return (Path(given).expanduser() if given else users) / name


def kept(kind: str, sources: Iterable[bytes], make: Callable[[], np.ndarray]) -> np.ndarray:
    """Returns the array that `make` does, from the cache if it is there and its checksum holds.

    Entries appear whole, by a rename, so processes may read and write at the same time.

    kind: the folder of such entries. sources: all that decides the array, in order: an entry is named by a hash of it.
    """
    hashed = hashlib.sha256()
    for source in sources:
        hashed.update(hashlib.sha256(source).digest())
    name = hashed.hexdigest()
    entry = cache_folder(kind) / name
    with suppress(OSError, ValueError, KeyError, EOFError, BadZipFile, MemoryError):  # it is not there, or damaged
        with entry.open("rb") as file:
            array: np.ndarray = np.load(file, allow_pickle=False)[name]
        os.utime(entry)  # it was used
        return array
    array = make()
    try:
        if array.nbytes <= LIMIT:
            _write(entry, array)
    except OSError as error:
        _warn(entry.parent, error.strerror or str(error))
    return array


def _write(entry: Path, array: np.ndarray) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    handle, hidden = tempfile.mkstemp(dir=entry.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            named: dict[str, Any] = {entry.name: array}
            np.savez(file, **named)  # an archive, which has a checksum
        os.replace(hidden, entry)
    except BaseException:
        Path(hidden).unlink(missing_ok=True)
        raise
    _delete_oldest(entry.parent)


def _delete_oldest(folder: Path) -> None:
    """Deletes the entries that were not used for longest, and files of killed processes, until the limit is kept."""
    files = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process has just deleted or renamed it
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            return
        path.unlink(missing_ok=True)
        total -= size


@cache
def _warn(folder: Path, why: str) -> None:
    """Says once that nothing is kept."""
    _log.warning(f"{folder}: what takes long, such as decoding images, cannot be kept there ({why}); set RAYSIM_CACHE")
