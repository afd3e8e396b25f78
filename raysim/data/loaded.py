"""Loads data sets, and checks that their inputs, labels and descriptions fit together."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from raysim.data.dataset import IGNORED, Dataset, Loss, Split
from raysim.data.meaning import InputMeaning, LabelMeaning, Meaning
from raysim.data.named import are_pixels, by_name, shape_of
from raysim.data.sources.source import Source
from raysim.parts.errors import BadValue

STORED = {"uint8", "int16", "int32", "float32"}  # types of inputs


def wrong_with(dataset: Dataset) -> str | None:
    """Returns what does not fit together in loaded samples; None if all does."""
    return wrong_type(dataset) or wrong_inputs(dataset) or wrong_labels(dataset) or wrong_statistics(dataset)


def load(data: Source) -> Dataset:
    """Returns what a data set loads. Raises ValueError if that does not fit together."""
    dataset, path = data.load(), getattr(data, "path", None)
    where = f" of {path!r}" if path else ""
    if wrong := wrong_with(dataset) or wrong_classes(dataset, data.classes):
        raise BadValue(f"{data.name}.load{where}: {wrong}")
    columns = {name: len(set(values.tolist())) for name, values in dataset.train.columns.items()}
    return replace(dataset, meaning=replace(dataset.meaning or meaning_of(dataset), columns=columns))


def meaning_of(dataset: Dataset) -> Meaning:
    """Returns what samples are, as types and shapes tell it."""
    train, outputs = dataset.train, dataset.num_classes
    if dataset.loss == "quadratic":
        return Meaning(InputMeaning("functions", train.x.shape[1:], str(train.x.dtype)), LabelMeaning("none", 0))
    labels = LabelMeaning("classes", outputs, (), train.y.shape[1:])
    if dataset.loss != "cross_entropy":
        labels = LabelMeaning("regression" if dataset.loss == "squared_error" else "multi_label", outputs)
    return Meaning(InputMeaning.of(train.x, dataset.mean, dataset.std), labels)


def wrong_type(found: Any) -> str | None:
    """Returns what is wrong with the types and lengths of what was loaded; None if nothing is."""
    if not isinstance(found, Dataset):
        return f"must return a raysim.data.Dataset, got {type(found).__name__}"
    for name, split in _splits(found):
        if not isinstance(split, Split):
            return f"{name}: must be a raysim.data.Split, got {type(split).__name__}"
        for key, values in {**by_name(split.x), "y": split.y, **split.columns}.items():
            if not isinstance(values, np.ndarray):
                return f"{name}: {key} must be a numpy array, got {type(values).__name__}"
        if not len(split):
            return f"{name}: must hold samples, got none"
    if found.loss not in get_args(Loss):
        return f"loss: must be one of {', '.join(get_args(Loss))}, got {found.loss!r}"
    if not isinstance(found.num_classes, int):  # tables and run.json hold it
        return f"num_classes: must be an int, got {type(found.num_classes).__name__}; convert it, with int"
    return None


def wrong_inputs(dataset: Dataset) -> str | None:
    """Returns what is wrong with types, shapes and values of inputs; None if nothing is."""
    for name, split in _splits(dataset):
        for key, x in by_name(split.x).items():
            kind = str(x.dtype)
            if kind not in STORED and not (kind == "bool" and key != "x"):
                return f"{name}: {key} must be uint8, int16, int32 or float32, got {kind}; convert it, with astype"
            if kind == "uint8" and key == "x" and x.ndim != 4:
                return f"{name}: images must be (n, height, width, channels), got shape {x.shape}"
            if kind == "float32" and not _finite(x):
                return f"{name}: {key} must be finite, got {_strange(x)}"
            if key == "x.attention_mask" and not (seen := x.reshape(len(x), -1).any(axis=1)).all():
                return f"{name}: {key} must show a token of each sample, got zeros in row {seen.argmin()}; leave it out"
    kinds = {name: ", ".join(str(x.dtype) for x in by_name(split.x).values()) for name, split in _splits(dataset)}
    if kinds["train"] != kinds["test"]:  # bytes are scaled where they are used, and floats are not
        return f"x: must have the same type in both splits, got {kinds}"
    shapes = {name: shape_of(split.x) for name, split in _splits(dataset)}
    if shapes["train"] != shapes["test"]:
        return f"x: must have the same shape in both splits, got {shapes}"
    return None


def wrong_labels(dataset: Dataset) -> str | None:
    """Returns what is wrong with labels or targets; None if nothing is."""
    for name, split in _splits(dataset):
        if dataset.loss in ("squared_error", "binary_cross_entropy"):
            if split.y.dtype != np.float32:
                return f"{name}: targets must be finite float32, got {split.y.dtype}; convert them, with astype"
            if not _finite(split.y):
                return f"{name}: targets must be finite float32, got {_strange(split.y)}"
            if dataset.loss == "binary_cross_entropy" and not ((split.y == 0) | (split.y == 1)).all():
                return (
                    f"{name}: each of several labels must be 0 or 1, got {split.y[(split.y != 0) & (split.y != 1)][0]}"
                )
            if split.y.ndim > 1 and split.y.shape[1:] != (dataset.num_classes,):
                must = f"targets must be (n, {dataset.num_classes}), as num_classes says"
                return f"{name}: {must}, got shape {split.y.shape}"
            continue
        if split.y.dtype != np.int64:
            targets = "; if they are targets, say loss='squared_error'" if split.y.dtype == np.float32 else ""
            return f"{name}: labels must be int64, got {split.y.dtype}; convert them, with astype{targets}"
        if dataset.loss == "cross_entropy" and (wrong := _wrong_numbers(split.y, dataset.num_classes)):
            return f"{name}: {wrong}"
    return None


def _wrong_numbers(y: np.ndarray, classes: int) -> str | None:
    """Returns what is wrong with labels; None if nothing is. Where a sample has several, some may be ignored."""
    low, high = int(y.min()), int(y.max())
    if low == IGNORED and y.ndim > 1:
        some = y != IGNORED
        if not (labelled := some.reshape(len(y), -1).any(axis=1)).all():
            row = int(labelled.argmin())
            return f"a sample must have a label in some place, got {IGNORED} in all of row {row}; leave it out"
        low = int(y.min(where=some, initial=high))
    if not 0 <= low <= high < classes:
        return f"labels must be 0 to {classes - 1}, as num_classes says, got {low} to {high}"
    return None


def wrong_classes(dataset: Dataset, said: int | None) -> str | None:
    """Returns what is wrong with the number of classes that the data set says before it is loaded; None if nothing."""
    if dataset.loss == "cross_entropy" and said is not None and said != dataset.num_classes:
        return f"classes: must be num_classes of what is loaded, {dataset.num_classes}, got {said}"
    return None


def wrong_statistics(dataset: Dataset) -> str | None:
    """Returns what is wrong with the mean and deviation of images; None if nothing is."""
    channels = dataset.train.x.shape[3] if are_pixels(dataset.train.x) else 0
    lengths = (len(dataset.mean), len(dataset.std))
    if lengths != (channels, channels):
        return f"mean and std: must have {channels} values each, one a channel of images, got {lengths}"
    if not all(value > 0 for value in dataset.std):
        return f"std: must be positive, got {dataset.std}"
    return None


def _splits(dataset: Dataset) -> tuple[tuple[str, Split], tuple[str, Split]]:
    return ("train", dataset.train), ("test", dataset.test)


def _strange(values: np.ndarray) -> str:
    """Returns the first value that is not finite, and where it is."""
    place = np.argwhere(~np.isfinite(values))[0]
    return f"{values[tuple(place)]} in row {place[0]}"


def _finite(values: np.ndarray) -> bool:
    """Whether all values are finite. It makes no array of the size of `values`, which may be large."""
    return bool(np.isfinite(values.min(initial=0)) and np.isfinite(values.max(initial=0)))
