"""A cache of arrays in the user's cache folder, because decoding images, say, takes longer than a short run.

An entry is named by a hash of all that decides the array. Whatever is damaged, or was not written for that name, fails
its checksum, and is made again. Entries appear whole, by a rename, so processes may read and write at the same time.
"""

import hashlib
import logging
import os
import platform
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np

from raysim.data.cache import cache_folder

LIMIT = 20 * 10**9  # bytes of all entries of a kind; those that were not used for longest are deleted first
_log = logging.getLogger("raysim")


def decoded(sources: Iterable[bytes], size: int | None, decode: Callable[[], np.ndarray]) -> np.ndarray:
    """Returns what `decode` does, images as uint8 (n, height, width, channels), from the cache if it is there.

    sources: what is decoded, in order: the content of each image's file, or what changes whenever that does. size: to
    which images are resized.
    """
    import PIL
    from PIL import features

    codecs = {codec: features.version(codec) for codec in ("jpg", "libjpeg_turbo", "zlib", "webp")}
    decides = repr((3, size, PIL.__version__, codecs, platform.machine())).encode()
    return kept("images", chain([decides], sources), decode)


def kept(kind: str, sources: Iterable[bytes], make: Callable[[], np.ndarray]) -> np.ndarray:
    """Returns the array that `make` does, from the cache if it is there.

    kind: the folder of such entries. sources: all that decides the array, in order.
    """
    hashed = hashlib.sha256()
    for source in sources:
        hashed.update(hashlib.sha256(source).digest())
    entry = cache_folder(kind) / hashed.hexdigest()
    if (found := _read(entry)) is not None:
        return found
    array = make()
    if array.nbytes <= LIMIT:
        _write(entry, array)
    return array


def _read(entry: Path) -> np.ndarray | None:
    try:
        with entry.open("rb") as file:
            images: np.ndarray = np.load(file, allow_pickle=False)
            if file.read() != _checksum(entry.name, images):
                return None
        os.utime(entry)  # it was used
    except (OSError, ValueError, MemoryError):  # it is not there, or damaged
        return None
    return images


def _write(entry: Path, images: np.ndarray) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        handle, hidden = tempfile.mkstemp(dir=entry.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                np.save(file, images)
                file.write(_checksum(entry.name, images))
            os.replace(hidden, entry)
        except BaseException:
            Path(hidden).unlink(missing_ok=True)
            raise
        _delete_oldest(entry.parent)
    except OSError as error:
        _warn(entry.parent, error.strerror or str(error))


def _checksum(name: str, images: np.ndarray) -> bytes:
    header = f"{name} {images.dtype} {images.shape}".encode()
    return hashlib.blake2b(np.ascontiguousarray(images).data, key=hashlib.sha256(header).digest()).digest()


def _delete_oldest(folder: Path) -> None:
    """Deletes the entries that were not used for longest, and files of killed processes, until the limit is kept."""
    files = []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # another process has just deleted or renamed it
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    files.sort()
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= LIMIT:
            return
        path.unlink(missing_ok=True)
        total -= size


@cache
def _warn(folder: Path, why: str) -> None:
    """Says once that nothing is kept."""
    _log.warning(f"{folder}: what takes long, such as decoding images, cannot be kept there ({why}); set RAYSIM_CACHE")
