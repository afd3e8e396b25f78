"""The base of data sets that users bring, as arrays of inputs and labels in many forms."""

from typing import NamedTuple

import numpy as np

from raysim.data.dataset import Dataset, Split
from raysim.data.federation.held_out import held_out_size
from raysim.data.federation.labelled import balanced
from raysim.data.federation.pool import Share
from raysim.data.sources.images import Images, stratified
from raysim.parts.rng import generator


class Raw(NamedTuple):
    """The samples of a split as a user has them."""

    x: np.ndarray
    y: np.ndarray
    columns: dict[str, np.ndarray]


class Brought(Images):
    """Samples that a user brings.

    Images are (n, height, width), (n, height, width, channels) or (n, channels, height, width); the channels are the
    first or the last of the three axes, whichever is shorter. Bytes (uint8) are pixels, and kept as bytes. All other
    numbers become float32, with `scale: standard` after they got mean 0 and deviation 1 over the training samples,
    channel by channel or feature by feature. Labels are integers from 0, or texts, which are numbered in sorted order;
    y of floats are targets of a regression, with the squared error as the loss.
    """

    test_share: Share = 0.2
    """Share of the samples that is the test set, equally many of each label; used only if there are no test samples. It
    is the same for every seed of a scenario."""

    def made_of(self, train: Raw, test: Raw | None) -> Dataset:
        """Returns the data set of these samples. test: None if a share of `train` is to be held out.

        Raises ValueError if they are not samples as above, or if the splits do not agree.
        """
        name = self.name
        exact = self.scale == "standard"
        train_x = inputs(train.x, f"data {name}: training inputs", exact)
        if test is None:
            y, classes = labels(name, train.y, None)
            of_train, of_test = held_out_share(Split(train_x, y, train.columns), self.test_share)
        else:
            test_x = inputs(test.x, f"data {name}: test inputs", exact)
            if test_x.shape[1:] != train_x.shape[1:] or (test_x.dtype == np.uint8) != (train_x.dtype == np.uint8):
                raise ValueError(
                    f"data {name}: test inputs must be as the training inputs, {train_x.dtype} of shape "
                    f"{train_x.shape[1:]!r}, got {test_x.dtype} of shape {test_x.shape[1:]!r}; make them alike"
                )
            y, classes = labels(name, train.y, test.y)
            cut = len(train.y)
            of_train, of_test = Split(train_x, y[:cut], train.columns), Split(test_x, y[cut:], test.columns)
        return self._used(of_train, of_test, classes)

    def _used(self, train: Split, test: Split, classes: int) -> Dataset:
        if train.x.dtype == np.uint8:
            return self.dataset(train, test, classes)
        if self.size is not None or self.channels is not None:
            raise ValueError(
                f"data {self.name}: `size` and `channels` must be null unless inputs are images of bytes (uint8), got "
                f"{train.x.dtype}; leave them out, or give bytes"
            )
        train = balanced(train, self.train_samples, classes, "train_samples")
        test = balanced(test, self.test_samples, classes, "test_samples")
        if self.scale == "standard":
            train, test = standardised(train, test)
        if train.y.dtype == np.float32:
            return Dataset(train, test, num_classes=1, loss="squared_error")
        return Dataset(train, test, classes)


def inputs(x: np.ndarray, what: str, exact: bool) -> np.ndarray:
    """Returns inputs as `Split` holds them. Raises ValueError if they cannot be.

    what: what they are, for errors. exact: whether numbers that float32 would round stay float64, to be standardised
    first: large ones may differ by less than float32 can tell.
    """
    if x.ndim == 0 or len(x) == 0 or x.dtype.kind not in "fiub":
        raise ValueError(
            f"{what} must be an array of numbers with a row for each sample, got {x.dtype} of shape {x.shape!r}"
        )
    if x.dtype == np.uint8 and x.ndim == 3:
        x = x[..., None]
    elif x.dtype == np.uint8 and x.ndim == 4 and x.shape[1] < x.shape[3]:
        x = x.transpose(0, 2, 3, 1)
    if x.dtype == np.uint8 and x.ndim == 4:
        return np.ascontiguousarray(x)
    single = x.astype(np.float32)
    if wrong := int(np.count_nonzero(~np.isfinite(single))):
        raise ValueError(f"{what} must be finite, got {wrong} values that are not, such as NaN; fill or drop them")
    x = x.astype(np.float64) if exact and np.result_type(x, np.float32) != np.float32 else single
    if x.ndim == 1:
        return x[:, None]
    if x.ndim == 3:
        return x[:, None]
    if x.ndim == 4 and x.shape[3] < x.shape[1]:
        x = x.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(x)


def labels(name: str, train: np.ndarray, test: np.ndarray | None) -> tuple[np.ndarray, int]:
    """Returns the labels, int64, or targets, float32, of all samples, (n,), and how many labels there are.

    Raises ValueError if they are neither, or if test samples have a label that no training sample has.
    """
    for y in (train, test):
        if y is not None and (y.ndim != 1 or y.dtype.kind not in "fiubUS"):
            raise ValueError(
                f"data {name}: labels must be integers or texts (n,), one for each sample, got {y.dtype} of shape "
                f"{y.shape!r}; take the class of each sample, such as the argmax of one-hot rows"
            )
    if test is not None and (train.dtype.kind == "f") != (test.dtype.kind == "f"):
        raise ValueError(
            f"data {name}: y must be labels or targets in both splits, got {train.dtype} of training samples and "
            f"{test.dtype} of test samples; make them alike"
        )
    y = train if test is None else np.concatenate([train, test])
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            wrong = np.count_nonzero(~np.isfinite(y))
            raise ValueError(f"data {name}: targets must be finite, got {wrong} that are not; fill or drop them")
        return y.astype(np.float32), 1
    if test is not None and len(strangers := np.setdiff1d(test, train)):
        raise ValueError(
            f"data {name}: labels of test samples must be labels of training samples, got {strangers[0].item()!r} in "
            f"{np.count_nonzero(test == strangers[0])} test samples only; correct the labels, or leave these out"
        )
    if y.dtype.kind in "US":
        known, y = np.unique(y, return_inverse=True)
        return y.astype(np.int64), len(known)
    y = y.astype(np.int64)
    if y.min() < 0:
        raise ValueError(f"data {name}: labels must be integers from 0, got {y.min()}; number them from 0")
    return y, int(y.max()) + 1


def held_out_share(split: Split, share: float) -> tuple[Split, Split]:
    """Splits samples: a random share, of each label if there are labels, is for testing, the rest for training."""
    if split.y.dtype == np.int64:
        return stratified(split, share)
    rows = generator(0, "test share").permutation(len(split))
    of_test, of_train = np.split(rows, [held_out_size(len(rows), share)])
    return split.take(np.sort(of_train)), split.take(np.sort(of_test))


def standardised(train: Split, test: Split) -> tuple[Split, Split]:
    """Returns the splits with inputs (n, channels or features, ...) of mean 0 and deviation 1 in `train`, as float32.

    A feature without variation gets deviation 1, because inputs are divided by it.
    """
    axes = (0, *range(2, train.x.ndim))
    mean = train.x.mean(axis=axes, dtype=np.float64, keepdims=True)
    deviation = train.x.std(axis=axes, dtype=np.float64, keepdims=True)
    constant = train.x.min(axis=axes, keepdims=True) == train.x.max(axis=axes, keepdims=True)
    deviation[constant | (deviation == 0)] = 1  # rounding of the mean lets a constant one have a tiny deviation

    def scaled(split: Split) -> Split:
        return Split(((split.x - mean) / deviation).astype(np.float32), split.y, split.columns)

    return scaled(train), scaled(test)
