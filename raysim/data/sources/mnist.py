"""MNIST, and Fashion-MNIST, whose files have the same format."""

from typing import ClassVar

import numpy as np

from raysim.data.dataset import Split
from raysim.data.sources.vision import Vision
from raysim.parts.errors import BadValue


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
        raise BadValue(
            f"{file!r} must be a whole IDX file of bytes, got {len(content)} bytes that start with "
            f"{content[:4]!r}; fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()  # the buffer is read-only
