"""Contents of values on their way between processes of one machine.

Large arrays lie in files in the memory of the machine, which every process maps as they are, without a copy.
"""

import mmap
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

MEMORY = Path("/dev/shm")  # a file system in memory, if the machine has it
ALIGNED = 64  # bytes at whose multiples arrays begin, as those of torch do
LEAST_BYTES = 1 << 15  # of arrays that get a file


@dataclass(eq=False)
class Parcel:
    """A content, pickled, as it is sent."""

    pickle: bytes  # without its arrays
    arrays: list[bytes]  # if they are small
    file: Path | None = None  # with the arrays, if they are large
    places: tuple[tuple[int, int], ...] = ()  # the first byte and the last one of each array in the file

    def open(self) -> Any:
        """Returns the content. Its arrays can only be read."""
        return pickle.loads(self.pickle, buffers=self._mapped() if self.file else self.arrays)

    def _mapped(self) -> list[memoryview]:
        assert self.file is not None
        with self.file.open("rb") as file:  # which may be deleted while it is mapped
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return [whole[first:last] for first, last in self.places]


class Folders:
    """Where the files of parcels are: in the machine's memory, and on its disk if that is full."""

    def __init__(self) -> None:
        memory = [tempfile.mkdtemp(prefix="raysim-", dir=MEMORY)] if MEMORY.is_dir() else []
        self._paths = [*memory, tempfile.mkdtemp(prefix="raysim-")]

    def pack(self, content: Any) -> Parcel:
        """Returns a content as a parcel. Raises OSError if there is no room for it."""
        buffers: list[pickle.PickleBuffer] = []
        pickled = cloudpickle.dumps(content, protocol=5, buffer_callback=buffers.append)
        arrays = [buffer.raw() for buffer in buffers]
        if sum(array.nbytes for array in arrays) < LEAST_BYTES:
            return Parcel(pickled, [bytes(array) for array in arrays])
        for path in self._paths[:-1]:
            with suppress(OSError):  # it is full
                return _written(pickled, arrays, path)
        return _written(pickled, arrays, self._paths[-1])

    def delete(self) -> None:
        """Deletes the folders and all files in them."""
        for path in self._paths:
            shutil.rmtree(path, ignore_errors=True)


def _written(pickled: bytes, arrays: Sequence[memoryview], folder: str) -> Parcel:
    """Returns a parcel with arrays in a file in a folder."""
    places = []
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            for array in arrays:
                first = file.seek(-(-file.tell() // ALIGNED) * ALIGNED)
                places.append((first, first + file.write(array)))
            file.flush()
        except OSError:
            Path(file.name).unlink()
            raise
    return Parcel(pickled, [], Path(file.name), tuple(places))


def owned(parcel: Parcel) -> Parcel:
    """Returns the parcel. Its file will be deleted when nothing in this process refers to the parcel any more."""
    if parcel.file:
        weakref.finalize(parcel, parcel.file.unlink, missing_ok=True).atexit = False
    return parcel
