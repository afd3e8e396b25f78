"""Reading files that may be damaged: any error of a library becomes one message that names the file. And what raysim
keeps to make later runs faster, such as decoded images, which may be deleted at any time."""

import codecs
import hashlib
import logging
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import glob
from pathlib import Path
from typing import IO, Any, ClassVar
from zipfile import BadZipFile

import numpy as np

from raysim.parts.errors import BadValue, MissingFile
from results.location import is_local, location, matches, require_file

LIMIT = 20 * 10**9  # bytes of all arrays of a kind; those that were not used for longest are deleted first
_log = logging.getLogger("raysim")


@contextmanager
def reading(path: str | Path, what: str, cure: str = "fetch or write it again") -> Iterator[None]:
    """Raises ValueError, with the path and what was found, if a library cannot read a file within the block.

    what: what the file must be, such as "a whole Parquet file". Libraries raise many classes of errors for damaged
    files, some of them of compiled code, so all are taken. MemoryError, BadValue and errors of opening the file pass. A
    pipe or a device is not opened, which is an error of opening it: it may have no end.
    """
    where = location(path).expanduser()
    if not where.is_dir():
        require_file(where)
    try:
        yield
    except (MemoryError, BadValue):
        raise
    except OSError as error:
        if error.filename is not None or error.errno is not None:
            raise
        raise _damaged(path, what, cure, error) from error
    except Exception as error:
        raise _damaged(path, what, cure, error) from error


def _damaged(path: str | Path, what: str, cure: str, error: Exception) -> ValueError:
    size = location(path).stat().st_size if location(path).is_file() else None
    found = f"{size} bytes, of which " if size is not None else ""
    said = " ".join(str(error).split())[:200] or "no more"
    return BadValue(f"{str(path)!r} must be {what}, got {found}{type(error).__name__} says: {said}; {cure}")


class PlainUnpickler(pickle.Unpickler):
    """Reads a pickle of arrays and plain values. Whatever else one names could run code, and is refused."""

    _known: ClassVar[dict[str, Any]] = {
        "ndarray": np.ndarray,
        "dtype": np.dtype,
        "_reconstruct": np.empty(0).__reduce__()[0],
        "scalar": np.float64(0).__reduce__()[0],
        "encode": codecs.encode,  # makes bytes, in files that Python 3 wrote
    }

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in ("numpy", "_codecs") or name not in self._known:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not an array, and could run code")
        return self._known[name]


def is_hidden(name: str) -> bool:
    """Whether a name is one of a system's own, such as .DS_Store, or what it leaves in archives."""
    return name.startswith(".") or name in ("__MACOSX", "__pycache__", "@eaDir", "#recycle")


def matching(pattern: str) -> list[str]:
    """Returns the files that a pattern matches, in order of their names, but for hidden ones that it does not name. The
    pattern may be a URI."""
    where = location(pattern)
    found = glob(str(where.expanduser()), recursive=True) if is_local(where) else matches(where)
    named = {*Path(pattern).expanduser().parts}
    return sorted(path for path in found if not any(is_hidden(part) for part in {*Path(path).parts} - named))


def files_below(folder: Path, suffixes: tuple[str, ...] = (), deep: bool = True) -> list[Path]:
    """Returns the files in a folder and, if `deep`, below it, also by links, in order of their names, but for hidden
    ones. suffixes: of their names, in small or capital letters; none: all files."""
    found = []
    for entry in folder.iterdir() if folder.is_dir() else ():
        if is_hidden(entry.name):
            continue
        if entry.is_dir():
            above = is_local(entry) and entry.is_symlink() and folder.resolve().is_relative_to(entry.resolve())
            found += files_below(entry, suffixes) if deep and not above else []
        elif not suffixes or entry.name.lower().endswith(suffixes):
            found.append(entry)
    return sorted(found)


def all_matching(key: str, patterns: tuple[str, ...]) -> list[str]:
    """Returns the files that several patterns match, pattern after pattern.

    key: the key of the patterns, for errors. Raises FileNotFoundError if one matches
    nothing.
    """
    for pattern in patterns:
        if not matching(pattern):
            raise MissingFile(f"must match a file, but {pattern!r} matches none; correct the path", key)
    return [path for pattern in patterns for path in matching(pattern)]


def load_npz(path: str) -> dict[str, np.ndarray]:
    """Returns all arrays of an .npz file by name. Raises FileNotFoundError if it is missing, ValueError if damaged."""
    file = location(path).expanduser()
    if not file.is_file():
        raise MissingFile(f"must be an .npz file, but {str(file.absolute())!r} is not there; correct the path", "path")
    what, kind = "a whole .npz file of arrays without objects", file.suffix.lower()
    cure = "write it again with numpy.savez" if kind == ".npz" else "write x and y into one with numpy.savez"
    if kind in (".csv", ".parquet", ".tsv"):
        cure = "take data of the name `table`, or `parquet` for images"
    with reading(file, what, cure), file.open("rb") as content, zipfile.ZipFile(content) as members:
        if others := [name for name in members.namelist() if not name.endswith(".npy")]:
            raise TypeError(f"it holds other files than arrays, such as {others[0]!r}")
        return {name.removesuffix(".npy"): _array(members, name) for name in members.namelist()}


def _array(members: zipfile.ZipFile, name: str) -> np.ndarray:
    with members.open(name) as member:
        if read_header(member).hasobject:
            raise TypeError("it holds Python objects; make numbers or texts of them")
    with members.open(name) as member:
        array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return array


def read_header(content: IO[bytes]) -> np.dtype:
    """Reads the header of an array in numpy's format, before its values, and returns their type."""
    version = np.lib.format.read_magic(content)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    kind: np.dtype = read(content)[2]
    return kind


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
