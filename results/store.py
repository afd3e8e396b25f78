"""Functions for places that may be on an object store, which works in another way than a disk.

A store has no folders: the names of objects contain slashes. It cannot rename or lock. But a reader sees a whole object
or none, and an object can be made on condition that its name is free.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from results.location import is_local


@contextmanager
def reaching(path: Path) -> Iterator[None]:
    """Turns exceptions of a store's library, such as for missing credentials, into OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if is_local(path):
            raise
        raise OSError(" ".join(str(error).split())) from error


@contextmanager
def _reached(path: Path) -> Iterator[tuple[Any, str]]:
    """Yields the file system of a place on a store, and its name there; see `reaching`."""
    with reaching(path):
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


def why(error: OSError) -> str:
    """Returns the reason for an error: the message of the operating system or, if it has none, that of a store's
    library."""
    return error.strerror or str(error)


def upload(file: Path, target: Path) -> None:
    """Copies a local file to a store. Readers see the old object or all of the new one."""
    with _reached(target) as (system, name):
        system.put_file(str(file), name)


def make_folder(folder: Path, *, parents: bool = False) -> None:
    """Makes a folder unless it is there. On a store it does nothing: there are no folders, and asking for one may
    make a bucket."""
    if is_local(folder):
        folder.mkdir(parents=parents, exist_ok=True)


def copy_folder(source: Path, target: Path) -> None:
    """Copies a folder with all that is in it."""
    if is_local(source) and is_local(target):
        shutil.copytree(source, target)
        return
    if is_local(source):
        names = [file.relative_to(source).as_posix() for file in source.rglob("*") if file.is_file()]
    else:
        names = list(stamps(source))
    for name in names:
        with local_copy(source / name) as copy:
            if is_local(target):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(copy, target / name)
            else:
                upload(copy, target / name)


def create(path: Path, content: bytes) -> bool:
    """Makes an object if its name is free, and returns whether it was."""
    try:
        with _reached(path) as (system, name):
            system.pipe_file(name, content, mode="create")
    except FileExistsError:
        return False
    return True


def overwrite(path: Path, content: bytes) -> None:
    """Makes an object, and replaces the one of its name if there is one."""
    with _reached(path) as (system, name):
        system.pipe_file(name, content)


def remove(files: Iterable[Path]) -> None:
    """Removes the files of one folder."""
    found = list(files)
    if found and is_local(found[0]):
        for file in found:
            file.unlink()
    elif found:
        with _reached(found[0]) as (system, _):
            system.rm([_name(file) for file in found])


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
    with reaching(folder):
        create(trial, b"")
        try:
            return trial.stat().st_mtime
        finally:
            remove([trial])


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
