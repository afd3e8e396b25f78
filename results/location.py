"""Files and folders on this machine or, named by URIs, on object stores such as S3.

What is on an object store is a `UPath` of universal_pathlib. It has the methods of a `pathlib.Path`, so most code needs
no distinction. Where a store works in another way than a disk, `results.store` has the functions.
"""

import errno
import os
import re
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from results.distribution import extra

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
        raise UnknownLocation("the empty text is no path; write . for the current folder")
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
    """Tells whether a place is on this machine, or on a disk that it shares with others."""
    return isinstance(path, Path)


def require_file(path: Path) -> Path:
    """Returns a path. Raises OSError if a pipe or a device is there, which may have no end, and so cannot be read."""
    if is_local(path) and path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return path


def require_ordinary(folder: Path) -> None:
    """Raises OSError if a folder holds anything but files and folders, or links to such: a pipe, a device, or a link
    that leads nowhere. Who opens a pipe may wait for ever."""
    for place, _, names in os.walk(folder) if is_local(folder) else ():
        for file in (Path(place, name) for name in names):
            require_file(file)
            if file.is_symlink() and not file.exists():
                raise OSError(errno.ENOENT, "it is a link that leads nowhere", str(file))


def is_uri(text: str) -> bool:
    """Tells whether a text is a URI, not a path."""
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
