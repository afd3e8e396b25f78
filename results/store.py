"""Functions for places that may be on an object store, which works in another way than a disk.

A store has no folders: the names of objects contain slashes. It cannot rename or lock. But a reader sees a whole object
or none, and an object can be made on condition that its name is free.
"""

from __future__ import annotations

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
def local_copy(path: Path) -> Iterator[Path]:
    """Yields a local file or folder with this one's content, for libraries that read no others. A local one is
    yielded as it is."""
    if is_local(path):
        yield path
        return
    with TemporaryDirectory(prefix="raysim-") as folder:
        copy = Path(folder, path.name)
        with reaching(path):
            _system(path).get(_name(path), str(copy), recursive=True)
        yield copy


def why(error: OSError) -> str:
    """Returns the reason for an error: the message of the operating system or, if it has none, that of a store's
    library."""
    return error.strerror or str(error)


def upload(file: Path, target: Path) -> None:
    """Copies a local file to a store. Readers see the old object or all of the new one."""
    with reaching(target):
        _system(target).put_file(str(file), _name(target))


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
        with reaching(path):
            _system(path).pipe_file(_name(path), content, mode="create")
    except FileExistsError:
        return False
    return True


def overwrite(path: Path, content: bytes) -> None:
    """Makes an object, and replaces the one of its name if there is one."""
    with reaching(path):
        _system(path).pipe_file(_name(path), content)


def remove(files: Iterable[Path]) -> None:
    """Removes the files of one folder."""
    found = list(files)
    if found and is_local(found[0]):
        for file in found:
            file.unlink()
    elif found:
        with reaching(found[0]):
            _system(found[0]).rm([_name(file) for file in found])


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
    with reaching(folder):
        found = _system(folder).find(_name(folder), detail=True)
    start = len(_name(folder).rstrip("/")) + 1
    return {name[start:]: (info["size"], _mark(info)) for name, info in sorted(found.items())}


def matches(pattern: Path) -> list[str]:
    """Returns the URIs of the objects that a pattern, such as s3://bucket/data/*.parquet, matches."""
    with reaching(pattern):
        found = _system(pattern).glob(_name(pattern))
    return [_system(pattern).unstrip_protocol(name) for name in found]


def in_arrow(file: Path) -> tuple[str, Any]:
    """Returns a file's name for Arrow, with Arrow's file system for it; None stands for this machine's."""
    return (str(file), None) if is_local(file) else (_name(file), _system(file))


def _mark(info: dict[str, Any]) -> str:
    marks = ("ETag", "etag", "md5Hash", "content_md5", "LastModified", "last_modified", "mtime", "created")
    return str(next((info[mark] for mark in marks if info.get(mark)), None))


def _system(path: Path) -> Any:
    return cast(Any, path).fs


def _name(path: Path) -> str:
    return cast(str, cast(Any, path).path)
