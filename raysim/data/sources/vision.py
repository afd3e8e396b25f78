"""Data sets that torchvision can download: MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, from their original files.

CIFAR's files are pickles. torchvision's reader unpickles them, and so runs whatever code a file holds; the one here
makes texts, numbers and arrays only, and works without torch.
"""

import gzip
import io
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.images import Images
from raysim.data.sources.reading import PlainUnpickler, reading
from raysim.parts.errors import BadValue, MissingFile
from results.location import is_uri, location


class Vision(Images):
    """A data set read from its original files, gzipped or not, in the folder where torchvision puts them."""

    root: str = "data"
    """Folder that contains the data set's own folder."""
    download: bool = False
    """Whether to download missing files, through torchvision."""

    source: ClassVar[str]  # the name of its class in torchvision.datasets
    folder: ClassVar[str]
    train_files: ClassVar[tuple[str, ...]]
    test_files: ClassVar[tuple[str, ...]]

    @property
    def classes(self) -> int:
        return 10

    @abstractmethod
    def read(self, files: tuple[str, ...]) -> Split:
        """Reads the samples in these files. Raises ValueError if one is damaged."""

    def load(self) -> Dataset:
        """Loads the data set. Raises FileNotFoundError, saying what to do, if a file is missing."""
        missing = [file for file in self.train_files + self.test_files if not self._path(file).exists()]
        if missing and self.download:
            from torchvision import datasets

            getattr(datasets, self.source)(self.root, download=True)
        elif missing:
            path = self._path(missing[0]).absolute()
            text = f"{path.name!r} (or {path.name + '.gz'!r}) must be in {str(path.parent)!r}, but is not there"
            cure = "set `download: true`, or put the data set there, or set `root` to where it is"
            raise MissingFile(f"{text}; {cure}")
        return self.dataset(self.read(self.train_files), self.read(self.test_files), self.classes)

    def problems(self) -> list[str]:
        if self.download and is_uri(self.root):
            text = f"downloads go to a folder of this machine, got {self.root!r}; put the files there, or leave it out"
            return [*super().problems(), f"`download`: {text}"]
        return super().problems()

    def reads(self) -> Sequence[Path]:
        return [self._path(file) for file in self.train_files + self.test_files]

    def content(self, file: str) -> bytes:
        """Returns the content of a file, decompressed. Raises ValueError if it is damaged."""
        path = self._path(file)
        if path.suffix != ".gz":
            return path.read_bytes()
        with reading(path, "a whole gzip file", "fetch it again"):
            return gzip.decompress(path.read_bytes())

    def _path(self, file: str) -> Path:
        plain = (location(self.root) / self.folder / file).expanduser()
        gzipped = plain.with_name(f"{file}.gz")
        return gzipped if gzipped.exists() and not plain.exists() else plain


class Mnist(Vision):
    """MNIST: 70,000 grey images of hand-written digits, 28 × 28."""

    name: str = "mnist"

    source: ClassVar[str] = "MNIST"
    folder: ClassVar[str] = "MNIST/raw"
    train_files: ClassVar[tuple[str, ...]] = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
    test_files: ClassVar[tuple[str, ...]] = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")

    def read(self, files: tuple[str, ...]) -> Split:
        images, labels = (parse_idx(self.content(file), file) for file in files)
        return Split(images[..., None], labels.astype(np.int64))


class FashionMnist(Mnist):
    """Fashion-MNIST: 70,000 grey images of clothes, 28 × 28."""

    name: str = "fashion_mnist"

    source: ClassVar[str] = "FashionMNIST"
    folder: ClassVar[str] = "FashionMNIST/raw"


def parse_idx(content: bytes, file: str) -> np.ndarray:
    """Returns the array of bytes in a file of the IDX format: magic number, lengths of the axes, values.

    Raises ValueError if it is damaged.
    """
    axes = content[3] if content[:3] == b"\x00\x00\x08" else 0
    start = 4 + 4 * axes
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if axes == 0 or len(content) != start + np.prod(shape, dtype=int):
        text = f"{file!r} must be a whole IDX file of bytes, got {len(content)} bytes that start with {content[:4]!r}"
        raise BadValue(f"{text}; fetch it again")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()  # the buffer is read-only


class Cifar10(Vision):
    """CIFAR-10: 60,000 colour images of 10 kinds of animals and vehicles, 32 × 32.

    Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """

    name: str = "cifar10"

    source: ClassVar[str] = "CIFAR10"
    folder: ClassVar[str] = "cifar-10-batches-py"
    train_files: ClassVar[tuple[str, ...]] = tuple(f"data_batch_{i}" for i in range(1, 6))
    test_files: ClassVar[tuple[str, ...]] = ("test_batch",)

    def read(self, files: tuple[str, ...]) -> Split:
        batches = [unpickle(self.content(file), file) for file in files]
        return Split(joined_images(batches), joined_labels(batches, b"labels"))


class Cifar100(Vision):
    """CIFAR-100: 60,000 colour images, 32 × 32, with 100 fine labels in 20 coarse ones."""

    name: str = "cifar100"
    labels: Literal["fine", "coarse"] = "fine"
    """Which labels are learned: the 100 fine or the 20 coarse ones. Both are columns that a partition may use."""

    source: ClassVar[str] = "CIFAR100"
    folder: ClassVar[str] = "cifar-100-python"
    train_files: ClassVar[tuple[str, ...]] = ("train",)
    test_files: ClassVar[tuple[str, ...]] = ("test",)

    @property
    def classes(self) -> int:
        return 100 if self.labels == "fine" else 20

    def read(self, files: tuple[str, ...]) -> Split:
        batches = [unpickle(self.content(file), file) for file in files]
        columns = {kind: joined_labels(batches, f"{kind}_labels".encode()) for kind in ("fine", "coarse")}
        return Split(joined_images(batches), columns[self.labels], columns)


def unpickle(content: bytes, file: str) -> dict[bytes, Any]:
    """Returns the keys and values that the file of a batch holds.

    Raises ValueError if it is damaged, or holds anything but texts, numbers, lists, dictionaries and arrays.
    """
    with reading(file, "a whole pickle of texts, numbers and arrays only", "fetch the original file again"):
        return dict(PlainUnpickler(io.BytesIO(content), encoding="bytes").load())


def joined_images(batches: list[dict[bytes, Any]]) -> np.ndarray:
    """Returns the images (n, 32, 32, 3); in the files, an image is a row of three colour planes."""
    planes = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def joined_labels(batches: list[dict[bytes, Any]], key: bytes) -> np.ndarray:
    """Returns the labels under this key, int64 (n,)."""
    return np.concatenate([np.asarray(batch[key], dtype=np.int64) for batch in batches])
