"""Files and folders on this machine or, named by URIs, on object stores such as S3.

What is on an object store is a `UPath` of universal_pathlib. It has the methods of a `pathlib.Path`, so most code needs
no distinction. Where a store works in another way than a disk, there are functions below.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from results.texts import extra

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}  # the extra of raysim to install, by scheme
_ONE_SLASH = re.compile(r"([a-z][a-z0-9+.-]+):/")  # what pathlib makes of a URI


class UnknownLocation(ValueError):
    """Raised for a URI that leads nowhere: its scheme is not known, or the library for it is not installed."""


def location(text: str | os.PathLike[str] | Any) -> Path:
    """Returns the place that a path or a URI names, such as runs, /data/mnist or s3://bucket/runs.

    A UPath is returned as it is. Raises UnknownLocation.
    """
    if not isinstance(text, str | os.PathLike):
        return cast(Path, text)
    uri = os.fspath(text)
    if not uri:
        raise UnknownLocation("the empty text is not a path; write . for the current folder")
    scheme, mark, _ = uri.partition("://")
    if not mark:
        if found := _ONE_SLASH.match(uri):
            cure = f"write {found[1]}://... (as text: pathlib drops a slash), or ./{uri} for a folder of that name"
            raise UnknownLocation(f"{uri}: a URI must have two slashes after {found[1]}:, got one; {cure}")
        return Path(text)
    if scheme == "file":
        return _of_file(uri)
    _require(uri, scheme)
    from upath import UPath

    # Other processes write too, so no listing is remembered.
    return cast(Path, UPath(uri, use_listings_cache=False))


def is_local(path: Path) -> bool:
    """Returns whether a place is on this machine, or on a disk that it shares with others."""
    return isinstance(path, Path)


def require_file(path: Path) -> Path:
    """Returns a path. Raises OSError if a pipe or a device is there, which may have no end, and so cannot be read."""
    if is_local(path) and path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path


def is_uri(text: str) -> bool:
    """Returns whether a text is a URI, not a path."""
    return "://" in text


def _of_file(uri: str) -> Path:
    split = urlsplit(uri)
    if split.netloc not in ("", "localhost") or not split.path:
        raise UnknownLocation(f"{uri}: must be file:/// and the whole path, such as file:///data/runs")
    return Path(unquote(split.path))


def _require(uri: str, scheme: str) -> None:
    from fsspec.registry import get_filesystem_class

    try:
        get_filesystem_class(scheme)
    except ImportError as error:
        cure = extra(_EXTRAS[scheme]) if scheme in _EXTRAS else str(error)
        raise UnknownLocation(f"{uri}: needs a library for {scheme}:// that is not installed; {cure}") from None
    except ValueError:
        text = f"must be a path, or a URI with a scheme that is known, such as s3, gs or file, got {scheme!r}"
        raise UnknownLocation(f"{uri}: {text}; correct it") from None


# --- where a store works in another way than a disk -------------------------------------------------------------------
# A store has no folders: the names of objects contain slashes. It cannot lock. But a reader sees a whole object or
# none. So what goes there is written to a disk and then copied.


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


def try_to_write(folder: Path) -> None:
    """Raises OSError if nothing can be written to a folder on a store."""
    from upath.implementations.cloud import CloudPath

    if not isinstance(folder, CloudPath):
        raise OSError(f"{folder.protocol} is not an object store, such as s3, gs or az")  # type: ignore[attr-defined]
    trial = folder / f".raysim-{os.urandom(8).hex()}"
    with _reached(trial) as (system, name):
        system.pipe_file(name, b"")
        system.rm_file(name)


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
