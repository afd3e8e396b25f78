"""A data set in memory: samples, labels, what the engine must know to use them, and which of the samples are used."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from raysim.data.meaning import Meaning, are_pixels
from raysim.parts.errors import BadValue
from raysim.parts.rng import generator

Loss = Literal["cross_entropy", "binary_cross_entropy", "squared_error", "quadratic"]
LOSSES: dict[str, Loss] = {
    "classes": "cross_entropy",
    "regression": "squared_error",
    "multi_label": "binary_cross_entropy",
}
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


def uneven(samples: int, num_classes: int, key: str) -> list[str]:
    """Says what is wrong with this number of samples if it cannot be spread evenly over the labels."""
    if samples % num_classes == 0:
        return []
    nearest = max(round(samples / num_classes), 1) * num_classes
    return [f"`{key}` must be a multiple of the number of labels, {num_classes}, got {samples}; take {nearest}"]


def balanced(split: Split, samples: int | None, num_classes: int, key: str) -> Split:
    """Returns the first samples / num_classes samples of each label, in stored order, or the first samples where they
    have no single label; all if samples is None.

    key: the setting's name, for errors. Raises ValueError if that is no whole number, or if there are fewer.
    """
    if samples is None or not split.labelled:
        return first(split, samples, key)
    for problem in uneven(samples, num_classes, key):
        raise BadValue(problem.removeprefix(f"`{key}` "), key)
    each = samples // num_classes
    have = np.bincount(split.y, minlength=num_classes)
    if have.min() < each:
        cure = f"lower it to {have.min() * num_classes} or less" if have.min() else "leave it out"
        text = f"`{key}` {samples} takes {each} samples of each label, got {have.min()} of label {have.argmin()}"
        raise BadValue(f"{text}; {cure}")
    return split.take(first_rows(split.y, samples, num_classes))


def first(split: Split, samples: int | None, key: str) -> Split:
    """Returns the first samples; all if samples is None. Raises ValueError if there are fewer."""
    if samples is None:
        return split
    if samples > len(split):
        raise BadValue(f"must be at most {len(split)}, the number of samples, got {samples}; lower it", key)
    return split.take(np.arange(samples))


def first_rows(labels: np.ndarray, samples: int, num_classes: int) -> np.ndarray:
    """Returns the rows of the first samples / num_classes samples of each label, ascending."""
    rows = [np.flatnonzero(labels == label)[: samples // num_classes] for label in range(num_classes)]
    return np.sort(np.concatenate(rows))


def tested(split: Split, share: float) -> tuple[Split, Split]:
    """Splits samples: a random share, of each label if there are labels, is for testing, the rest for training.

    It is the same for every seed of a scenario.
    """
    draw = generator(0, "test share")
    groups = rows_by_value(split.y) if split.labelled else [np.arange(len(split))]
    rows = np.sort(np.concatenate([draw.permutation(rows)[: held_out_size(len(rows), share)] for rows in groups]))
    return split.take(np.setdiff1d(np.arange(len(split)), rows)), split.take(rows)


def held_out_size(samples: int, share: float) -> int:
    """Returns how many samples are held out: the share, rounded down, but at least one and never all.

    Nothing is held out if the share is 0 or there are fewer than two samples.
    """
    if share == 0 or samples < 2:
        return 0
    rounded_down = int(share * samples + 1e-9)  # 0.29 * 100 is 28.999999999999996
    return min(max(rounded_down, 1), samples - 1)


def rows_by_value(values: np.ndarray) -> list[np.ndarray]:
    """Returns the rows that have each distinct value, ascending, by value in sorted order."""
    _, counts = np.unique(values, return_counts=True)
    return pieces(np.argsort(values, kind="stable"), counts)


def pieces(rows: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Cuts rows into pieces of the sizes, several times faster than `np.split`."""
    ends = np.cumsum(sizes).tolist()
    return [rows[start:end] for start, end in zip([0, *ends], ends, strict=False)]
