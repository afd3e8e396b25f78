"""Functions for places that may be on an object store, which works in another way than a disk.

A store has no folders: the names of objects contain slashes. It cannot lock. But a reader sees a whole object or none,
and an object can be made on condition that its name is free. So what goes there is written to a disk and copied.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from results.location import is_local


@contextmanager
def reaching() -> Iterator[None]:
    """Turns exceptions of a store's library, such as for missing credentials, into OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(" ".join(str(error).split())) from error


@contextmanager
def _reached(path: Path) -> Iterator[tuple[Any, str]]:
    """Yields the file system of a place on a store, and its name there; see `reaching`."""
    with reaching():
        yield cast(Any, path).fs, _name(path)


@contextmanager
def local_copy(path: Path) -> Iterator[Path]:
    """Yields a local file or folder with this one's content, for libraries that read no others. A local one is
    yielded as it is."""
    if is_local(path):
        yield path
        return
    with TemporaryDirectory(prefix="raysim-") as folder:
        copy = Path(folder, path.name)
        with _reached(path) as (system, name):
            system.get(name, str(copy), recursive=True)
        yield copy


def upload(source: Path, target: Path) -> None:
    """Copies a local file or folder to a store. Readers see an old object or all of the new one."""
    with _reached(target) as (system, name):
        if source.is_dir():
            system.put(f"{source}/", f"{name}/", recursive=True)
        else:
            system.put_file(str(source), name)


def copy_folder(source: Path, target: Path) -> None:
    """Copies a folder with all that is in it to a place where there is none."""
    with local_copy(source) as copy:
        if is_local(target):
            shutil.copytree(copy, target)
        else:
            upload(copy, target)


def why(error: OSError) -> str:
    """Returns the reason for an error: the message of the operating system or, if it has none, that of a store's
    library."""
    return error.strerror or str(error)


def create(path: Path, content: bytes) -> bool:
    """Makes an object if its name is free, and returns whether it was."""
    try:
        with _reached(path) as (system, name):
            system.pipe_file(name, content, mode="create")
    except FileExistsError:
        return False
    return True


def try_to_write(folder: Path) -> None:
    """Raises OSError if nothing can be written to a folder on a store."""
    from upath.implementations.cloud import CloudPath

    if not isinstance(folder, CloudPath):
        raise OSError(f"{folder.protocol} is no object store, such as s3, gs or az")  # type: ignore[attr-defined]
    time_of(folder)


def time_of(folder: Path) -> float:
    """Returns the time of a store's own clock, as its files' `st_mtime` has it. Raises OSError if nothing can be
    written to the folder."""
    trial = folder / f".raysim-{os.urandom(8).hex()}"
    with reaching():
        create(trial, b"")
        try:
            return trial.stat().st_mtime
        finally:
            trial.unlink()


def stamps(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Returns, for each file below a place on a store, its size and a stamp that changes whenever it is written.

    The name of a file is relative to the folder. The place may also be a file itself, whose name is then "".
    """
    with _reached(folder) as (system, place):
        found = system.find(place, detail=True)
    start = len(place.rstrip("/")) + 1
    return {name[start:]: (info["size"], _mark(info)) for name, info in sorted(found.items())}


def matches(pattern: Path) -> list[str]:
    """Returns the URIs of the objects that a pattern, such as s3://bucket/data/*.parquet, matches."""
    with _reached(pattern) as (system, place):
        return [system.unstrip_protocol(name) for name in system.glob(place)]


def in_arrow(file: Path) -> tuple[str, Any]:
    """Returns a file's name for Arrow, with Arrow's file system for it; None stands for this machine's."""
    return (str(file), None) if is_local(file) else (_name(file), cast(Any, file).fs)


def _mark(info: dict[str, Any]) -> str:
    marks = ("ETag", "etag", "md5Hash", "content_md5", "LastModified", "last_modified", "mtime", "created")
    return str(next((info[mark] for mark in marks if info.get(mark)), None))


def _name(path: Path) -> str:
    return cast(str, cast(Any, path).path)
