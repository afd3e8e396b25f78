"""The base of sources of samples as users have them: keys say what their arrays mean, or it is guessed and told."""

from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Loss, Split
from raysim.data.named import NamedArrays, are_pixels, by_name, shape_of, shape_text
from raysim.data.sources.images import Images
from raysim.data.sources.inputs import described, inputs_of
from raysim.data.sources.labels import labels_of
from raysim.data.sources.leaks import told_by
from raysim.data.sources.meaning import Meaning
from raysim.data.sources.source import Share
from raysim.data.sources.subset import balanced, tested
from raysim.parts.errors import BadValue
from raysim.terms import Inputs


class Raw(NamedTuple):
    """The samples of a split as a user has them. classes: number of labels, if that is known."""

    x: np.ndarray | NamedArrays
    y: np.ndarray
    columns: dict[str, np.ndarray]
    classes: int | None = None


Names = Annotated[tuple[str, ...], Field(min_length=1)]
TRAINING = "training inputs"  # how errors call them
_BRIGHT = 100  # numbers that are larger are no pixels from 0 to 1


class RawSamples(Images):
    """Samples as a user has them.

    Bytes (uint8) of images are pixels, and kept as bytes. Tokens are whole numbers, and kept. All other numbers become
    float32, with `scale: standard` after they got mean 0 and deviation 1 over the training samples: feature by feature,
    sensor by sensor, or channel by channel. What `inputs` and `task` leave open is taken for what it most likely is,
    which `raysim check --data` tells.
    """

    inputs: Literal["images_first", "images_last", "series", "tokens", "features"] | Names | None = None
    """What inputs are. images_first: (n, channels, height, width), or (n, height, width). images_last: (n, height,
    width, channels), or (n, height, width). series: (n, steps, sensors). tokens: whole numbers (n, length). features:
    (n, features), or (n,). null: bytes of three or four axes are images, and so are other numbers of four axes, or of
    three where height and width are equal; other numbers of three axes are series; those of one or two are features.
    Whether channels are first or last is told by the lengths of the axes. A list of names, such as [input_ids, mask]:
    an input is a row of each of these arrays, which are used as they are; a module gets them by these names."""
    task: Literal["classes", "regression", "multi_label"] | None = None
    """What is predicted. classes: labels, which are whole numbers or texts; unless they are 0, 1, 2 and so on, they are
    numbered in sorted order; or whole numbers for each token (n, length) or pixel (n, height, width), where -100 is no
    label. regression: numbers, (n,) or several for each sample (n, targets), with the squared error as the loss.
    multi_label: 0 or 1 for each of several labels (n, labels). null: classes for integers and texts, also of tokens, a
    regression for floats."""
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
        if isinstance(self.inputs, tuple):
            return ("named",)
        return named.get(self.inputs, ("images", "features", "series"))

    def made_of(self, train: Raw, test: Raw | None) -> Dataset:
        """Returns the data set of these samples. test: None if a share of `train` is to be held out.

        Raises ValueError if they are not samples as above, or if the splits do not agree.
        """
        train, test = _with_values(train), None if test is None else _with_values(test)
        exact = self.scale == "standard"
        x, told_of_x = inputs_of(train.x, None if isinstance(self.inputs, tuple) else self.inputs, TRAINING, exact)
        if test is None:
            y, classes, told_of_y = labels_of(train.y, None, self.task, x, train.classes)
            of_train, of_test = tested(Split(x, y, train.columns), self.test_share)
        else:
            test_x, _ = inputs_of(test.x, told_of_x.key, "test inputs", exact)
            if shape_of(test_x) != shape_of(x) or are_pixels(test_x) != are_pixels(x):
                must, got = _kind(x), _kind(test_x)
                raise BadValue(f"test inputs must be as the training inputs, {must}, got {got}; make them alike")
            y, classes, told_of_y = labels_of(train.y, test.y, self.task, x, train.classes)
            cut = len(train.y)
            of_train, of_test = Split(x, y[:cut], train.columns), Split(test_x, y[cut:], test.columns)
        return self._used(of_train, of_test, classes, told_of_x, told_of_y)

    def _used(self, train: Split, test: Split, classes: int, of_x: Meaning, of_y: Meaning) -> Dataset:
        notes = (*of_x.notes, *of_y.notes)
        if isinstance(train.x, np.ndarray):
            text = "of x says no more than y, and may be y in other numbers; leave it out unless it is meant"
            notes += tuple(f"data: feature {column} {text}" for column in told_by(train.x, train.y))
            floats = of_x.key in ("images_first", "images_last") and not train.pixels
            if floats and self.scale == "unit" and (most := train.x.max()) > _BRIGHT:
                text = "which `scale: unit` leaves so; give bytes (uint8), or divide them"
                notes += (f"data.scale: x are floats up to {most:g}, {text}",)
        meaning = (f"x: {of_x.text}", f"y: {of_y.text}")
        losses: dict[str | None, Loss] = {"regression": "squared_error", "multi_label": "binary_cross_entropy"}
        loss = losses.get(of_y.key, "cross_entropy")
        if train.pixels:
            images = replace(self.dataset(train, test, classes), loss=loss)
            return replace(images, meaning=(described(images)[0], meaning[1]), notes=notes)
        if self.size is not None or self.channels is not None:
            raise BadValue(
                f"`size` and `channels` must be null unless inputs are images of bytes (uint8), got "
                f"{_kind(train.x)}; leave them out, or give bytes"
            )
        train = balanced(train, self.train_samples, classes, "train_samples")
        test = balanced(test, self.test_samples, classes, "test_samples")
        if self.scale == "standard" and isinstance(train.x, np.ndarray) and train.x.dtype.kind == "f":
            train, test = standardised(train, test, of_x.key)
        return Dataset(train, test, classes, loss=loss, meaning=meaning, notes=notes)


def _with_values(raw: Raw) -> Raw:
    """Returns samples with columns (n,). Raises ValueError if one lacks a value, which would be an owner of its own."""
    columns = {
        name: column.reshape(len(column)) if set(column.shape[1:]) == {1} else column
        for name, column in raw.columns.items()
    }
    for name, column in columns.items():
        lacks = np.isnan(column) if column.dtype.kind == "f" else column == "" if column.dtype.kind == "U" else None
        if lacks is not None and lacks.any():
            row = int(np.argwhere(lacks)[0][0])
            raise BadValue(f"{name!r} must have a value in every row, got none in row {row}; fill it, or leave it out")
    return raw._replace(columns=columns)


def _kind(x: np.ndarray | NamedArrays) -> str:
    return f"{', '.join(str(one.dtype) for one in by_name(x).values())} of shape {shape_text(shape_of(x))}"


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
