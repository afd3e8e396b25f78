"""Turns errors of a full disk, or of a folder that cannot be written to, into one message that says what to do."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from results.location import is_local, try_to_write, upload
from results.texts import cut

_LONGEST = 255  # bytes in the name of a file or folder, on all usual file systems
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CannotWrite(OSError):
    """Raised where a file or a folder cannot be written."""

    def __init__(self, path: Path, cause: str, full: bool) -> None:
        super().__init__(path, cause, full)
        self.path, self.cause = path, cause
        self._cure = "free some space there, or take another folder" if full else "take a folder that you may write to"
        self.free = free(path)  # bytes; None where it is not known

    def __str__(self) -> str:
        left = "" if self.free is None else f", {self.free:,} bytes were free"
        return f"{cut(str(self.path), _LONGEST)}: cannot be written ({self.cause}{left}); {self._cure}"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns errors of the operating system in the block into CannotWrite. path: the file or folder that the block
    writes."""
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno else str(error)
        raise CannotWrite(path, cause, error.errno in _FULL) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary place to write a file to, and gives the file its name after the block: readers see the old
    file or all of the new one.

    That place is beside it, in a folder that is made if it is missing, because a rename is atomic within one file
    system only. What goes to an object store is written to this machine first. Raises CannotWrite if the file cannot be
    written; nothing of it is then left, so that others find room on a full disk.
    """
    if not is_local(path):
        with TemporaryDirectory(prefix="raysim-") as folder, writing(path):
            yield (file := Path(folder, path.name))
            upload(file, path)
        return
    hidden = path.with_name(f".{path.name}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden.unlink(missing_ok=True)  # it may be a link, and lead elsewhere
        try:
            yield hidden
            os.replace(hidden, path)
        except OSError:
            hidden.unlink(missing_ok=True)
            raise


def require_folder(folder: Path) -> None:
    """Raises CannotWrite if the folder cannot be written to, or is missing and could not be made.

    It makes no folder. To test an object store, it makes an object and removes it.
    """
    if not is_local(folder):
        with writing(folder):
            try_to_write(folder)
        return
    with writing(folder):
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise CannotWrite(folder, f"{there} is not a folder", False)
    if not os.access(there, os.W_OK | os.X_OK):
        raise CannotWrite(folder, f"you may not write to {there}", False)


def require_space(folder: Path, needed: int) -> None:
    """Raises CannotWrite if fewer bytes are free than will be needed at least."""
    found = free(folder)
    if found is not None and found < needed:
        raise CannotWrite(folder, f"it will need {needed:,} bytes at least", True)


def free(path: Path) -> int | None:
    """Returns how many bytes are free where a path is, or would be; None if that is not known."""
    if not is_local(path):
        return None
    for place in (path, *path.absolute().parents):
        if os.path.isdir(place):
            try:
                usage = shutil.disk_usage(place)
                return usage.free if usage.total else None  # such as /proc, which has no size
            except OSError:
                return None
    return None
