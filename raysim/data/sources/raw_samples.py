"""The base of sources of samples as users have them: rules or keys say what their arrays mean."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field

from raysim.data.dataset import LOSSES, Dataset, Split, tested
from raysim.data.meaning import (
    InputMeaning,
    Meaning,
    NamedArrays,
    are_pixels,
    by_name,
    require_answered,
    shape_of,
    shape_text,
)
from raysim.data.sources.images import Images
from raysim.data.sources.in_memory import as_array
from raysim.data.sources.inputs import FORMS, As, kind_of, named_or_plain, question, require_numbers, stored
from raysim.data.sources.labels import Said, labels_of, one_axis, questions
from raysim.data.sources.source import Share
from raysim.parts.errors import BadValue
from raysim.parts.part import Count
from raysim.terms import Inputs

Names = Annotated[tuple[str, ...], Field(min_length=1)]
_SPLITS = ("training inputs", "test inputs")  # how errors call them


class RawSamples(Images):
    """Samples as a user has them.

    Bytes (uint8) of images are pixels, and kept as bytes. Tokens are whole numbers, and kept. All other numbers become
    float32, with `scale: standard` after they got mean 0 and deviation 1 over the training samples: feature by feature,
    sensor by sensor, or channel by channel. Where neither a rule nor a key says what inputs or labels are, an error
    shows the lines between which to choose.
    """

    inputs: As | Names | None = None
    """What inputs are. images_first: (n, channels, height, width), or (n, height, width). images_last: (n, height,
    width, channels), or (n, height, width). series: (n, steps, sensors), or (n, steps). volumes: (n, channels, depth,
    height, width). tokens: whole numbers (n, length). features: (n, features), or (n,). A list of names, such as
    [input_ids, mask]: an input is a row of each of these arrays, which are used as they are; a module gets them by
    these names. null: features for (n, features) and (n,); images for four axes, of which exactly one end has 1 or 3
    places; all others must be said."""
    task: Literal["classes", "regression", "multi_label"] | None = None
    """What is predicted. classes: whole numbers or texts, which are numbered in sorted order; or whole numbers for each
    token (n, length) or pixel (n, height, width), which keep their numbers. regression: numbers, (n,) or several for
    each sample (n, targets), with the squared error as the loss. multi_label: 0 or 1 for each of several labels (n,
    labels). null: classes for texts, booleans, and whole numbers (n,) that are 0 to C - 1 without gaps, at most 100;
    all others must be said."""
    num_classes: Count | None = None
    """Number of classes: labels are 0 to num_classes - 1, of which some may not occur. null: those that occur."""
    ignore: int | None = None
    """The whole number that is no label: samples with it are left out or, where each token or pixel has a label, no
    loss and no metric counts it. null: -100 for tokens and pixels, and none for samples."""
    test_share: Share = 0.2
    """Share of the samples that is the test set, equally many of each label; used only if there are no test samples. It
    is the same for every seed of a scenario."""

    @property
    def holds(self) -> tuple[Inputs, ...]:  # type: ignore[override]
        if isinstance(self.inputs, tuple):
            return ("named",)
        return ("images", "features") if self.inputs is None else (FORMS[self.inputs].kind,)

    @property
    def classes(self) -> int | None:
        return self.num_classes

    def problems(self) -> list[str]:
        if self.task in (None, "classes") or (self.num_classes is None and self.ignore is None):
            return super().problems()
        return [f"`num_classes` and `ignore` are for classes, got `task: {self.task}`; leave them out"]

    def made_of(
        self, train: Split, test: Split | None, unused: Iterable[str] = (), names: tuple[str, ...] = ()
    ) -> Dataset:
        """Returns the data set of these samples. test: None if a share of `train` is to be held out. unused: what is
        beside them. names: of the classes, if the labels are their numbers.

        Raises ValueError if they are not samples as above, if the splits do not agree, or if it is not said what they
        are.
        """
        splits = [self._labelled(one) for one in (train, test) if one is not None]
        ys, said = [one.y for one in splits], Said(self.task, self.num_classes, self.ignore, names)
        for one, what in zip(splits, _SPLITS, strict=False):
            require_numbers(one.x, what)
        named = isinstance(train.x, NamedArrays)
        kind = "named" if named else kind_of(train.x, cast(As | None, self.inputs))
        require_answered([*([question(train.x)] if kind is None else []), *questions(ys, said)])
        standard = self.scale == "standard"
        xs = [stored(one.x, str(kind), what, standard) for one, what in zip(splits, _SPLITS, strict=False)]
        if shape_of(xs[-1]) != shape_of(xs[0]) or are_pixels(xs[-1]) != are_pixels(xs[0]):
            must, got = _in_words(xs[0]), _in_words(xs[1])
            raise BadValue(f"test inputs must be as the training inputs, {must}, got {got}; make them alike")
        y, labels = labels_of(ys, said)
        of_train, of_test = splits_of(xs, y, [one.columns for one in splits], self.test_share)
        if of_train.pixels:
            return self.dataset(of_train, of_test, labels, unused)
        if self.size is not None or self.channels is not None:
            text = "`size` and `channels` must be null unless inputs are images of bytes (uint8)"
            raise BadValue(f"{text}, got {_in_words(xs[0])}; leave them out, or give bytes")
        inputs = InputMeaning.of(of_train.x, kind=None if named else FORMS[str(kind)].kind)
        meaning = Meaning(inputs, labels, unused=tuple(unused))
        scales = standard and not named and of_train.x.dtype.kind == "f"
        return Dataset(of_train, of_test, labels.outputs, loss=LOSSES[labels.task], meaning=meaning, standardise=scales)

    def inputs_of(self, given: Any, inputs: InputMeaning, folder: Path) -> Any:
        """Takes inputs as those of the samples are: an array, or a dict of those that have names."""
        found = as_array(given) if not isinstance(given, Mapping) else None
        if found is None or isinstance(self.inputs, tuple) or inputs.kind == "text":
            return named_or_plain(given, inputs)
        require_numbers(found, "inputs")
        if (kind := kind_of(found, self.inputs)) is None:
            raise BadValue(f"inputs must be as those that trained the model, {inputs}, got shape {found.shape}")
        x = stored(found, str(kind), "inputs", self.scale == "standard")
        return self.fitted(x) if are_pixels(x) else x

    def _labelled(self, split: Split) -> Split:
        """Returns the samples that have a label, with columns (n,). Raises ValueError if a column lacks a value, which
        would be one more owner."""
        columns = {name: one_axis(column) for name, column in split.columns.items()}
        for name, column in columns.items():
            lacks = np.isnan(column) if column.dtype.kind == "f" else column == "" if column.dtype.kind == "U" else None
            if lacks is not None and lacks.any():
                row = int(np.argwhere(lacks)[0][0])
                text = f"must have a value in every row, got none in row {row}; fill it, or leave it out"
                raise BadValue(f"{name!r} {text}")
        found = Split(split.x, one_axis(split.y), columns)
        if self.ignore is None or found.y.ndim > 1:
            return found
        return found.take(np.flatnonzero(found.y != self.ignore))


def splits_of(xs: list[Any], y: np.ndarray, columns: list[dict[str, np.ndarray]], share: float) -> tuple[Split, Split]:
    """Returns the training and the test samples: those of each split or, of one, a share for testing. y: of all."""
    ys = np.split(y, [len(xs[0])])
    splits = [Split(x, part, sides) for x, part, sides in zip(xs, ys, columns, strict=False)]
    return (splits[0], splits[1]) if len(splits) == 2 else tested(splits[0], share)


def _in_words(x: Any) -> str:
    return f"{', '.join(str(one.dtype) for one in by_name(x).values())} of shape {shape_text(shape_of(x))}"
