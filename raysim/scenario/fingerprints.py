"""Fingerprints of files and folders: hashes of what they hold, so that they are the same on every machine."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

LARGE = 2**26  # bytes; the fingerprints of what is larger are kept for the next time


def fingerprint(path: str | Path) -> str | None:
    """Returns the fingerprint of a file, or of all files in a folder; None if it is not there."""
    place = Path(path).expanduser().absolute()
    try:
        stats = [(name, file.stat()) for name, file in _files(place)]
        if not stats:
            return None
        size = sum(stat.st_size for _, stat in stats)
        seen = _short(json.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]).encode())
        return _remembered(place, seen) if size >= LARGE else _of(place, seen)
    except OSError:  # whoever reads it for the run says so
        return None


def _files(place: Path) -> Iterator[tuple[str, Path]]:
    if place.is_file():
        yield "", place
    for file in sorted(place.rglob("*")) if place.is_dir() else ():
        if file.is_file():
            yield file.relative_to(place).as_posix(), file


@lru_cache(maxsize=1024)
def _of(place: Path, seen: str) -> str:
    """Reads all that is in a place. seen: names, sizes and times of its files, which tell when to read it again."""
    del seen
    hashed = hashlib.sha256()
    for name, file in _files(place):
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        hashed.update(name.encode() + b"\0" + content)
    return hashed.hexdigest()[:16]


@lru_cache(maxsize=1024)
def _remembered(place: Path, seen: str) -> str:
    """Returns what `_of` does, or has returned in another process before."""
    known = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raysim" / "fingerprints"
    entry = known / _short(str(place).encode())
    try:
        before, found = entry.read_text().split()
        if before == seen:
            return found
    except (OSError, ValueError):  # not known yet
        pass
    found = _of(place, seen)
    try:
        known.mkdir(parents=True, exist_ok=True)
        new = entry.with_suffix(f".{os.getpid()}")
        new.write_text(f"{seen} {found}\n")
        new.replace(entry)
    except OSError:  # no place for it: it will be read again
        pass
    return found


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
