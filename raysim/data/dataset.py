"""A data set in memory: samples, labels, and what the engine must know to use them."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from raysim.data.meaning import Meaning
from raysim.data.named import are_pixels, together
from raysim.parts.errors import BadValue

Loss = Literal["cross_entropy", "binary_cross_entropy", "squared_error", "quadratic"]
IGNORED = -100  # the label of a place that has none, such as padding: no loss and no metric counts it


@dataclass(frozen=True)
class Split:
    """The training or the test samples of a data set.

    x: images as uint8 (n, height, width, channels), tokens as int16 or int32 (n, length), or float32 (n, ...); or
    several arrays by name. y: labels as int64 (n,), or one for each token (n, length) or pixel (n, height, width), of
    which -100 is none; or float32: targets (n,) or (n, targets), or 0 or 1 for each of several labels (n, labels).
    columns: further values of each sample, such as its writer, by name, as arrays (n,).
    """

    x: Any  # np.ndarray, or NamedArrays, which most code need not tell apart
    y: np.ndarray
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {"x": len(self.x), "y": len(self.y), **{name: len(column) for name, column in self.columns.items()}}
        if len(set(lengths.values())) > 1:
            raise BadValue(f"x, y and every column must have the same length, got {lengths!r}")

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> "Split":
        """Returns copies of the samples in these rows, in the order of the rows."""
        return Split(self.x[rows], self.y[rows], {name: column[rows] for name, column in self.columns.items()})

    def with_others(self, others: "Split") -> "Split":
        """Returns the samples of both splits, without the columns."""
        return Split(together(self.x, others.x), np.concatenate([self.y, others.y]))

    @property
    def pixels(self) -> bool:
        """Whether inputs are images of bytes."""
        return are_pixels(self.x)

    @property
    def labels(self) -> np.ndarray:
        """One label per sample, for counting, int64 (n,): y, or zeros if samples have no label or several."""
        return self.y if self.labelled else np.zeros(len(self), dtype=np.int64)

    @property
    def labelled(self) -> bool:
        """Whether each sample has one label."""
        return self.y.dtype == np.int64 and self.y.ndim == 1

    def column(self, name: str) -> np.ndarray:
        """Returns the values (n,) of a column, or y for `label`. Raises ValueError if there is no such column."""
        known = {**({"label": self.y} if self.labelled else {}), **self.columns}
        if name not in known:
            several = "; samples have no single label to divide by: name a column" if name == "label" else ""
            raise BadValue(f"no column {name!r}; this data set has {list(known)!r}{several}")
        return known[name]


@dataclass(frozen=True)
class Dataset:
    """A loaded data set.

    mean, std: by channel, of the training images scaled to 0..1; images are normalised with them on the device. Both
    are empty where x is float32, which is used as it is. num_classes: number of a model's outputs: the number of
    labels, or of targets for squared_error, or 0 where the output is the loss itself. meaning: what inputs and labels
    are; None where types and shapes tell it. standardise: whether inputs, floats, are still to be shifted and scaled to
    mean 0 and deviation 1 over the training samples; they may be float64 until then. notes: what was done otherwise
    than asked, each with its key.
    """

    train: Split
    test: Split
    num_classes: int
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    loss: Loss = "cross_entropy"
    meaning: Meaning | None = None
    standardise: bool = False
    notes: tuple[str, ...] = ()
