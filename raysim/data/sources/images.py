"""The base of image data sets, with how their pixels are scaled, and the smallest of them, for first steps."""

from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.data.dataset import Dataset, Split, balanced, uneven
from raysim.data.meaning import InputMeaning
from raysim.data.sources.in_memory import as_array
from raysim.data.sources.pixels import fit
from raysim.data.sources.source import Source
from raysim.parts.errors import BadValue
from raysim.parts.part import Pixels
from raysim.parts.rng import generator
from raysim.terms import Inputs


class Images(Source):
    """A data set of labelled uint8 images."""

    scale: Literal["standard", "unit"] = "standard"
    """How pixels are scaled. standard: over the training samples, each channel has mean 0 and standard deviation 1.
    unit: pixels are from 0 to 1."""
    size: Pixels | None = None
    """Side, in pixels, of the square that images are resized to; needed if their sizes differ. null: not resized."""
    channels: Literal[1, 3] | None = None
    """Number of channels that images get: one is repeated in three, three are averaged to one. null: as they are."""

    holds: ClassVar[tuple[Inputs, ...]] = ("images",)

    def problems(self) -> list[str]:
        counts = {"train_samples": self.train_samples, "test_samples": self.test_samples}
        return [text for key, count in counts.items() if count for text in uneven(count, self.classes or 1, key)]

    def dataset(self, train: Split, test: Split, num_classes: int) -> Dataset:
        """Returns the data set of the samples that are used, with the mean and deviation of its training samples.

        x of both splits may be anything that `pixels` turns into images. Raises ValueError if there are not equally
        many samples of each label to use.
        """
        train = self._decoded(balanced(train, self.train_samples, num_classes, "train_samples"))
        test = self._decoded(balanced(test, self.test_samples, num_classes, "test_samples"))
        return Dataset(train, test, num_classes, *self.statistics(train.x))

    def inputs_of(self, given: Any, inputs: InputMeaning, folder: Path) -> Any:
        """Takes bytes (n, height, width, channels) or (n, height, width), or names of image files."""
        x = as_array(given)
        if x.dtype.kind in "OUST":
            x = self.pixels(x.astype(np.str_))
        return self.fitted(x[..., None] if x.ndim == 3 else x)

    def _decoded(self, split: Split) -> Split:
        return Split(self.fitted(self.pixels(split.x)), split.y, split.columns)

    def fitted(self, x: np.ndarray) -> np.ndarray:
        """Returns images (n, height, width, channels) in the size, and with the channels, that this data set has."""
        if x.dtype != np.uint8 or x.ndim != 4:
            raise BadValue(f"images must be uint8 (n, height, width, channels), got {x.dtype} of shape {x.shape}")
        height, width, channels = x.shape[1:]
        wanted = (self.size or height, self.size or width, self.channels or channels)
        if wanted != (height, width, channels):
            if channels not in (1, 3):
                text = f"images must have 1 or 3 channels where `size` or `channels` changes them, got {channels}"
                raise BadValue(f"{text}; leave these keys out")
            x = fit(x, *wanted)
        return x

    def pixels(self, x: np.ndarray) -> np.ndarray:
        """Returns the images, uint8 (n, height, width, channels). Data sets of files override it: x has names."""
        return x

    def statistics(self, x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Returns the mean and deviation, by channel, with which images (n, height, width, channels) are scaled."""
        if self.scale == "unit":
            return (0.0,) * x.shape[-1], (1.0,) * x.shape[-1]
        return channel_statistics(x)


def channel_statistics(x: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns mean and standard deviation by channel of uint8 images (n, height, width, channels), scaled to 0..1.

    The sums are over integers and so exact. A channel without variation gets deviation 1, because images are divided
    by it.
    """
    pixels, channels = x[..., 0].size, x.shape[-1]
    blocks = np.array_split(x, len(x) // 1024 + 1)  # the squares of all images at once would take twice their memory
    total = x.sum(axis=0, dtype=np.int64).reshape(-1, channels).sum(axis=0)
    squared = np.sum([np.square(block, dtype=np.uint16).sum(axis=0, dtype=np.int64) for block in blocks], axis=0)
    squares = squared.reshape(-1, channels).sum(axis=0)
    mean = total / pixels
    std = np.sqrt(np.maximum(squares / pixels - mean**2, 0)) / 255
    return tuple((mean / 255).tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


class Digits(Images):
    """1,797 hand-written digits of 8 × 8 pixels, which come with raysim; scikit-learn's `load_digits` has the same.

    Alpaydin, Kaynak, Optical recognition of handwritten digits, UCI machine learning repository, 1998 (CC BY 4.0).
    """

    classes: ClassVar[int] = 10

    name: str = "digits"

    def load(self) -> Dataset:
        """Loads 1,438 training and 359 test images (n, 8, 8, 1), the same ones for every seed of a scenario."""
        rows = _digits()
        x = np.round(rows[:, :-1] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
        everything = Split(x, rows[:, -1])
        order = generator(0, "digits").permutation(len(everything))
        test, train = np.split(order, [len(everything) // 5])
        return self.dataset(everything.take(np.sort(train)), everything.take(np.sort(test)), num_classes=10)


@cache  # 0.9 MB, and a small run takes no longer than reading them
def _digits() -> NDArray[np.int64]:
    """Returns 64 grey levels from 0 to 16 of each image, and its label."""
    return np.loadtxt(Path(__file__).parent / "digits.csv.gz", delimiter=",", dtype=np.int64)
