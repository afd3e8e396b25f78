"""Fingerprints of files and folders: hashes of their content, which are the same on every machine."""

import hashlib
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from raysim.data.cache import cache_folder
from results.location import is_local, location
from results.store import stamps

LARGE = 2**26  # bytes; fingerprints of larger files are cached for the next process


def fingerprint(path: str | Path) -> str | None:
    """Returns the fingerprint of a file, or of all files in a folder; None if it is not there.

    On an object store it is of sizes and of what the store says of each file's content, so that nothing is fetched.
    """
    where = location(path).expanduser().absolute()
    try:
        if not is_local(where):
            found = stamps(where)
            return _short(json.dumps(found).encode()) if found else None
        stats = [(name, file.stat()) for name, file in files_in(where)]
        if not stats:
            return None
        size = sum(stat.st_size for _, stat in stats)
        seen = _short(json.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]).encode())
        return _remembered(where, seen) if size >= LARGE else _of(where, seen)
    except OSError:  # the run reports it when it reads the file
        return None


def files_in(where: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files of a folder in a fixed order, with their names there; a file itself has an empty one."""
    if where.is_file():
        yield "", where
    for file in sorted(where.rglob("*")) if where.is_dir() else ():
        if file.is_file():
            yield file.relative_to(where).as_posix(), file


@lru_cache(maxsize=1024)
def _of(where: Path, seen: str) -> str:
    """Reads all files in a place. seen: their names, sizes and times, which show when they must be read again."""
    del seen
    hashed = hashlib.sha256()
    for name, file in files_in(where):
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        hashed.update(name.encode() + b"\0" + content)
    return hashed.hexdigest()[:16]


@lru_cache(maxsize=1024)
def _remembered(where: Path, seen: str) -> str:
    """Returns what `_of` returns, from a cache if this or another process has read the same files before."""
    known = cache_folder("fingerprints")
    entry = known / _short(str(where).encode())
    try:
        before, found = entry.read_text().split()
        if before == seen:
            return found
    except (OSError, ValueError):  # not known yet
        pass
    found = _of(where, seen)
    try:
        known.mkdir(parents=True, exist_ok=True)
        new = entry.with_suffix(f".{os.getpid()}")
        new.write_text(f"{seen} {found}\n")
        new.replace(entry)
    except OSError:  # nowhere to cache it, so it will be read again
        pass
    return found


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
