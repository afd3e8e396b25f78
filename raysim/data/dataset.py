"""A data set in memory: samples, labels, and what the engine must know to use them."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Split:
    """The training or the test samples of a data set.

    x: images as uint8 (n, height, width, channels), or float32 (n, ...). y: int64 (n,).
    columns: what else is known of each sample, such as its writer, as arrays (n,).
    """

    x: np.ndarray
    y: np.ndarray
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {"x": len(self.x), "y": len(self.y), **{name: len(column) for name, column in self.columns.items()}}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"split: x, y and every column must have the same length, got {lengths!r}")

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> "Split":
        """The samples of these rows, copied, in their order."""
        return Split(self.x[rows], self.y[rows], {name: column[rows] for name, column in self.columns.items()})

    def column(self, name: str) -> np.ndarray:
        """The values (n,) that samples are grouped by: `label`, or a column's name. ValueError if there is none."""
        if name == "label":
            return self.y
        if name not in self.columns:
            raise ValueError(f"data: no column {name!r}; this data set has {['label', *self.columns]!r}")
        return self.columns[name]


@dataclass(frozen=True)
class Dataset:
    """What a data set's `load` gives.

    mean, std: per channel of the training images scaled to 0..1, with which the engine normalises on the device; empty
    where x is float32, which is used as it is. num_classes: 0 where the loss needs none.
    """

    train: Split
    test: Split
    num_classes: int
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    loss: Literal["cross_entropy", "quadratic"] = "cross_entropy"


def image_dataset(train: Split, test: Split, num_classes: int) -> Dataset:
    """A classification data set of uint8 images, with the mean and deviation of its training images."""
    mean, std = channel_statistics(train.x)
    return Dataset(train, test, num_classes, mean, std)


def channel_statistics(x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel of uint8 images (n, height, width, channels), scaled to 0..1.

    The sums are of integers, so they are exact. A channel without any variation gets 1, for the engine divides by it.
    """
    pixels, channels = x[..., 0].size, x.shape[-1]
    blocks = np.array_split(x, len(x) // 1024 + 1)  # the squares of all images at once would take twice their memory
    total = x.sum(axis=0, dtype=np.int64).reshape(-1, channels).sum(axis=0)
    squared = np.sum([np.square(block, dtype=np.uint16).sum(axis=0, dtype=np.int64) for block in blocks], axis=0)
    squares = squared.reshape(-1, channels).sum(axis=0)
    mean = total / pixels
    std = np.sqrt(np.maximum(squares / pixels - mean**2, 0)) / 255
    return tuple((mean / 255).tolist()), tuple(np.where(std > 0, std, 1.0).tolist())
