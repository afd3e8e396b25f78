"""The base of sources of samples as users have them: keys say what their arrays mean, or it is guessed and told."""

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from raysim.data.dataset import Dataset, Split
from raysim.data.sources.images import Images
from raysim.data.sources.meaning import Meaning, described, inputs_of, labels_of
from raysim.data.sources.source import Share
from raysim.data.sources.subset import balanced, tested
from raysim.parts.errors import BadValue
from raysim.terms import Inputs


class Raw(NamedTuple):
    """The samples of a split as a user has them. classes: number of labels, if that is known."""

    x: np.ndarray
    y: np.ndarray
    columns: dict[str, np.ndarray]
    classes: int | None = None


class RawSamples(Images):
    """Samples as a user has them.

    Bytes (uint8) of images are pixels, and kept as bytes. Tokens are whole numbers, and kept. All other numbers become
    float32, with `scale: standard` after they got mean 0 and deviation 1 over the training samples: feature by feature,
    sensor by sensor, or channel by channel. What `inputs` and `task` leave open is taken for what it most likely is,
    which `raysim check --data` tells.
    """

    inputs: Literal["images_first", "images_last", "series", "tokens", "features"] | None = None
    """What inputs are. images_first: (n, channels, height, width), or (n, height, width). images_last: (n, height,
    width, channels), or (n, height, width). series: (n, steps, sensors). tokens: whole numbers (n, length). features:
    (n, features), or (n,). null: bytes of three or four axes are images, and so are other numbers of four axes, or of
    three where height and width are equal; other numbers of three axes are series; those of one or two are features.
    Whether channels are first or last is told by the lengths of the axes."""
    task: Literal["classes", "regression"] | None = None
    """What is predicted. classes: labels, which are whole numbers or texts; unless they are 0, 1, 2 and so on, they are
    numbered in sorted order. regression: numbers, with the squared error as the loss. null: classes for integers and
    texts, a regression for floats."""
    test_share: Share = 0.2
    """Share of the samples that is the test set, equally many of each label; used only if there are no test samples. It
    is the same for every seed of a scenario."""

    @property
    def holds(self) -> tuple[Inputs, ...]:  # type: ignore[override]
        named: dict[str | None, tuple[Inputs, ...]] = {
            "images_first": ("images",),
            "images_last": ("images",),
            "series": ("series",),
            "tokens": ("text",),
            "features": ("features",),
        }
        return named.get(self.inputs, ("images", "features", "series"))

    def made_of(self, train: Raw, test: Raw | None) -> Dataset:
        """Returns the data set of these samples. test: None if a share of `train` is to be held out.

        Raises ValueError if they are not samples as above, or if the splits do not agree.
        """
        exact = self.scale == "standard"
        x, told_of_x = inputs_of(train.x, self.inputs, "training inputs", exact)
        if test is None:
            y, classes, told_of_y = labels_of(train.y, None, self.task, x, train.classes)
            of_train, of_test = tested(Split(x, y, train.columns), self.test_share)
        else:
            test_x, _ = inputs_of(test.x, told_of_x.key, "test inputs", exact)
            if test_x.shape[1:] != x.shape[1:] or (test_x.dtype == np.uint8) != (x.dtype == np.uint8):
                raise BadValue(
                    f"test inputs must be as the training inputs, {x.dtype} of shape {x.shape[1:]!r}, got "
                    f"{test_x.dtype} of shape {test_x.shape[1:]!r}; make them alike"
                )
            y, classes, told_of_y = labels_of(train.y, test.y, self.task, x, train.classes)
            cut = len(train.y)
            of_train, of_test = Split(x, y[:cut], train.columns), Split(test_x, y[cut:], test.columns)
        return self._used(of_train, of_test, classes, told_of_x, told_of_y)

    def _used(self, train: Split, test: Split, classes: int, of_x: Meaning, of_y: Meaning) -> Dataset:
        notes = (*of_x.notes, *of_y.notes)
        meaning = (f"x: {of_x.text}", f"y: {of_y.text}")
        if train.x.dtype == np.uint8:
            images = self.dataset(train, test, classes)
            return replace(images, meaning=(described(images)[0], meaning[1]), notes=notes)
        if self.size is not None or self.channels is not None:
            raise BadValue(
                f"`size` and `channels` must be null unless inputs are images of bytes (uint8), got "
                f"{train.x.dtype}; leave them out, or give bytes"
            )
        train = balanced(train, self.train_samples, classes, "train_samples")
        test = balanced(test, self.test_samples, classes, "test_samples")
        if self.scale == "standard" and train.x.dtype.kind == "f":
            train, test = standardised(train, test, of_x.key)
        loss: Literal["squared_error", "cross_entropy"] = (
            "squared_error" if train.y.dtype == np.float32 else "cross_entropy"
        )
        return Dataset(train, test, classes, loss=loss, meaning=meaning, notes=notes)


def standardised(train: Split, test: Split, inputs: str | None = None) -> tuple[Split, Split]:
    """Returns the splits with inputs of mean 0 and deviation 1 in `train`, as float32.

    Each sensor is for itself if inputs are series (n, steps, sensors), and else each feature or channel (n, channels or
    features, ...). One without variation gets deviation 1, because inputs are divided by it.
    """
    own = 2 if inputs == "series" else 1
    axes = tuple(axis for axis in range(train.x.ndim) if axis != own)
    mean = train.x.mean(axis=axes, dtype=np.float64, keepdims=True)
    deviation = train.x.std(axis=axes, dtype=np.float64, keepdims=True)
    constant = train.x.min(axis=axes, keepdims=True) == train.x.max(axis=axes, keepdims=True)
    deviation[constant | (deviation == 0)] = 1  # rounding of the mean lets a constant one have a tiny deviation

    def scaled(split: Split) -> Split:
        return Split(((split.x - mean) / deviation).astype(np.float32), split.y, split.columns)

    return scaled(train), scaled(test)
