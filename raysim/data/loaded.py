"""Loads data sets, and checks that their inputs, labels and descriptions fit together."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from raysim.data.dataset import IGNORED, Dataset, Loss, Split, balanced
from raysim.data.meaning import InputMeaning, LabelMeaning, Meaning, are_pixels, by_name, shape_of
from raysim.data.sources.inputs import scaled_by, scaled_like
from raysim.data.sources.source import Source
from raysim.parts.errors import BadValue

STORED = {"uint8", "int16", "int32", "float32"}  # types of inputs


def load(data: Source) -> Dataset:
    """Returns what a data set loads. Raises ValueError if that does not fit together."""
    dataset, path = data.load(), getattr(data, "path", None)
    if wrong := wrong_with(dataset, data.classes):
        where = f" of {path!r}" if path else ""
        raise BadValue(f"{data.name}.load{where}: {wrong}")
    train, test = (
        split if limit in (None, len(split)) else balanced(split, limit, dataset.num_classes, key)
        for split, limit, key in (  # of which most sources of images have taken as many as they should
            (dataset.train, data.train_samples, "train_samples"),
            (dataset.test, data.test_samples, "test_samples"),
        )
    )
    columns = {name: len(set(values.tolist())) for name, values in train.columns.items()}
    meaning = replace(dataset.meaning or meaning_of(dataset), columns=columns)
    if dataset.standardise:
        meaning = replace(meaning, inputs=scaled_like(train.x, meaning.inputs))
        train, test = (replace(split, x=scaled_by(split.x, meaning.inputs)) for split in (train, test))
    return replace(dataset, train=train, test=test, meaning=meaning)


def meaning_of(dataset: Dataset) -> Meaning:
    """Returns what samples are, as types and shapes tell it."""
    train, outputs = dataset.train, dataset.num_classes
    if dataset.loss == "quadratic":
        return Meaning(InputMeaning("functions", train.x.shape[1:], str(train.x.dtype)), LabelMeaning("none", 0))
    labels = LabelMeaning("classes", outputs, (), train.y.shape[1:])
    if dataset.loss != "cross_entropy":
        labels = LabelMeaning("regression" if dataset.loss == "squared_error" else "multi_label", outputs)
    return Meaning(InputMeaning.of(train.x, dataset.mean, dataset.std), labels)


def wrong_with(found: Any, classes: int | None = None) -> str | None:
    """Returns what does not fit together in what was loaded; None if all does. classes: the number that the data set
    says before it is loaded, if it does."""
    if not isinstance(found, Dataset):
        return f"must return a raysim.data.Dataset, got {type(found).__name__}"
    if found.loss not in get_args(Loss):
        return f"loss: must be one of {', '.join(get_args(Loss))}, got {found.loss!r}"
    if not isinstance(found.num_classes, int):  # tables and run.json hold it
        return f"num_classes: must be an int, got {type(found.num_classes).__name__}; convert it, with int"
    splits = {"train": found.train, "test": found.test}
    for name, split in splits.items():
        stored = STORED | {"float64"} if found.standardise else STORED
        if wrong := next(_of_split(split, stored), None) or next(_of_labels(found, split), None):
            return f"{name}: {wrong}"
    return next(_of_both(found, classes), None)


def _of_split(split: Any, stored: set[str]) -> Iterator[str]:
    """Yields what is wrong with the types, shapes and values of a split. stored: types that inputs may have."""
    if not isinstance(split, Split):
        yield f"must be a raysim.data.Split, got {type(split).__name__}"
        return
    for key, values in {**by_name(split.x), "y": split.y, **split.columns}.items():
        if not isinstance(values, np.ndarray):
            yield f"{key} must be a numpy array, got {type(values).__name__}"
            return
    if not len(split):
        yield "must hold samples, got none"
        return
    for key, x in by_name(split.x).items():
        kind = str(x.dtype)
        if kind not in stored and not (kind == "bool" and key != "x"):
            yield f"{key} must be uint8, int16, int32 or float32, got {kind}; convert it, with astype"
        if kind == "uint8" and key == "x" and x.ndim != 4:
            yield f"images must be (n, height, width, channels), got shape {x.shape}"
        if kind == "float32" and not _finite(x):
            yield f"{key} must be finite, got {_strange(x)}"
        if key == "x.attention_mask" and not (seen := x.reshape(len(x), -1).any(axis=1)).all():
            yield f"{key} must show a token of each sample, got zeros in row {seen.argmin()}; leave it out"


def _of_labels(dataset: Dataset, split: Split) -> Iterator[str]:
    """Yields what is wrong with the labels or targets of a split."""
    y, outputs = split.y, dataset.num_classes
    if dataset.loss in ("squared_error", "binary_cross_entropy"):
        if y.dtype != np.float32 or not _finite(y):
            got = f"{y.dtype}; convert them, with astype" if y.dtype != np.float32 else _strange(y)
            yield f"targets must be finite float32, got {got}"
        if dataset.loss == "binary_cross_entropy" and (odd := y[(y != 0) & (y != 1)]).size:
            yield f"each of several labels must be 0 or 1, got {odd[0]}"
        if y.ndim > 1 and y.shape[1:] != (outputs,):
            yield f"targets must be (n, {outputs}), as num_classes says, got shape {y.shape}"
        return
    if y.dtype != np.int64:
        targets = "; if they are targets, say loss='squared_error'" if y.dtype == np.float32 else ""
        yield f"labels must be int64, got {y.dtype}; convert them, with astype{targets}"
    if dataset.loss != "cross_entropy":
        return
    some = y != IGNORED if y.ndim > 1 else np.ones(len(y), dtype=bool)  # only places may have no label
    if not (labelled := some.reshape(len(y), -1).any(axis=1)).all():
        row = int(labelled.argmin())
        yield f"a sample must have a label in some place, got {IGNORED} in all of row {row}; leave it out"
        return
    low, high = int(y[some].min()), int(y[some].max())
    if not 0 <= low <= high < outputs:
        yield f"labels must be 0 to {outputs - 1}, as num_classes says, got {low} to {high}"


def _of_both(dataset: Dataset, classes: int | None) -> Iterator[str]:
    """Yields what does not fit together in the splits and their description."""
    of_both = {"train": dataset.train.x, "test": dataset.test.x}
    kinds = {name: ", ".join(str(one.dtype) for one in by_name(x).values()) for name, x in of_both.items()}
    # Bytes are scaled where they are used, and floats are not.
    if kinds["train"] != kinds["test"] and not dataset.standardise:
        yield f"x: must have the same type in both splits, got {kinds}"
    shapes = {name: shape_of(x) for name, x in of_both.items()}
    if shapes["train"] != shapes["test"]:
        yield f"x: must have the same shape in both splits, got {shapes}"
    channels = dataset.train.x.shape[3] if are_pixels(dataset.train.x) else 0
    if (lengths := (len(dataset.mean), len(dataset.std))) != (channels, channels):
        yield f"mean and std: must have {channels} values each, one a channel of images, got {lengths}"
    if not all(value > 0 for value in dataset.std):
        yield f"std: must be positive, got {dataset.std}"
    if dataset.loss == "cross_entropy" and classes not in (None, dataset.num_classes):
        yield f"classes: must be num_classes of what is loaded, {dataset.num_classes}, got {classes}"


def _strange(values: np.ndarray) -> str:
    """Returns the first value that is not finite, and where it is."""
    place = np.argwhere(~np.isfinite(values))[0]
    return f"{values[tuple(place)]} in row {place[0]}"


def _finite(values: np.ndarray) -> bool:
    """Whether all values are finite. It makes no array of the size of `values`, which may be large."""
    return bool(np.isfinite(values.min(initial=0)) and np.isfinite(values.max(initial=0)))
