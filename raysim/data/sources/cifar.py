"""CIFAR-10 and CIFAR-100 (Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009).

Their files are pickles. torchvision's reader unpickles them, and so runs whatever code a file holds; the one here makes
texts, numbers and arrays only, and works without torch.
"""

import io
from typing import Any, ClassVar, Literal

import numpy as np

from raysim.data.dataset import Split
from raysim.data.sources.reading import PlainUnpickler, reading
from raysim.data.sources.vision import Vision


class Cifar10(Vision):
    """CIFAR-10: 60,000 colour images of 10 kinds of animals and vehicles, 32 × 32."""

    name: str = "cifar10"

    source: ClassVar[str] = "CIFAR10"
    folder: ClassVar[str] = "cifar-10-batches-py"
    train_files: ClassVar[tuple[str, ...]] = tuple(f"data_batch_{i}" for i in range(1, 6))
    test_files: ClassVar[tuple[str, ...]] = ("test_batch",)

    def read(self, files: tuple[str, ...]) -> Split:
        batches = [unpickle(self.content(file), file) for file in files]
        return Split(images(batches), labels(batches, b"labels"))


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
        columns = {"fine": labels(batches, b"fine_labels"), "coarse": labels(batches, b"coarse_labels")}
        return Split(images(batches), columns[self.labels], columns)


def unpickle(content: bytes, file: str) -> dict[bytes, Any]:
    """Returns the keys and values that the file of a batch holds.

    Raises ValueError if it is damaged, or holds anything but texts, numbers, lists, dictionaries and arrays.
    """
    with reading(file, "a whole pickle of texts, numbers and arrays only", "fetch the original file again"):
        return dict(PlainUnpickler(io.BytesIO(content), encoding="bytes").load())


def images(batches: list[dict[bytes, Any]]) -> np.ndarray:
    """Returns the images (n, 32, 32, 3); in the files, an image is a row of three colour planes."""
    planes = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def labels(batches: list[dict[bytes, Any]], key: bytes) -> np.ndarray:
    """Returns the labels under this key, int64 (n,)."""
    return np.concatenate([np.asarray(batch[key], dtype=np.int64) for batch in batches])
