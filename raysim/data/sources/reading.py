"""Reading files that may be damaged: any error of a library becomes one message that names the file."""

import codecs
import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from raysim.parts.errors import BadValue, MissingFile
from results.location import is_local, location, matches, require_file


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
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no array, and could run code")
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
