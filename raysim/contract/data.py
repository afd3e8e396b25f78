"""The laws of data sets: what they load fits their labels, is the same each time, and can be divided."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from raysim.contract import runs
from raysim.contract.law import Broken, Groups
from raysim.contract.subject import Subject
from raysim.data.dataset import Dataset, Split
from raysim.rng import globals_kept, seed_globals

STORED = {"uint8", "int16", "float32"}  # types of inputs


@lru_cache(maxsize=1)
def loaded(subject: Subject) -> Dataset:
    """Returns the loaded data, which are loaded once."""
    found = load(subject, 0)
    if not isinstance(found, Dataset):
        raise Broken(f"{subject.name}: `load` must return a raysim.data.Dataset, got {type(found).__name__}")
    return found


def load(subject: Subject, seed: int) -> Dataset:
    """Loads the data. seed: of the global generators, so that draws from them show."""
    with globals_kept():
        seed_globals(seed, "load")
        found: Dataset = data_of(subject).load()
        return found


def data_of(subject: Subject) -> Any:
    """Returns the data set, with the keys that it is given."""
    return subject.made


def splits(subject: Subject) -> dict[str, Split]:
    """Returns the training and the test samples by name."""
    dataset = loaded(subject)
    return {"train": dataset.train, "test": dataset.test}


def it_loads(subject: Subject) -> None:
    """`load` returns training and test samples."""
    for name, split in splits(subject).items():
        if not len(split):
            raise Broken(f"{name}: must hold samples, got none")


def inputs_fit(subject: Subject) -> None:
    """Inputs are finite, of the same shape in both splits, and stored as uint8 images, int16 tokens or float32."""
    shapes = {}
    for name, split in splits(subject).items():
        kind, shapes[name] = str(split.x.dtype), split.x.shape[1:]
        if kind not in STORED:
            raise Broken(f"{name}: x must be uint8, int16 or float32, got {kind}; convert it, with astype")
        if kind == "uint8" and split.x.ndim != 4:
            raise Broken(f"{name}: images must be (n, height, width, channels), got shape {split.x.shape}")
        if kind == "float32" and not np.isfinite(split.x).all():
            row = int(np.argwhere(~np.isfinite(split.x))[0][0])
            raise Broken(f"{name}: x must be finite, got {split.x[row].ravel()[:4]} in row {row}")
    if shapes["train"] != shapes["test"]:
        raise Broken(f"x: must have the same shape in both splits, got {shapes}")


def labels_fit(subject: Subject) -> None:
    """Labels are int64 from 0 up to the number of classes, or finite float32 targets."""
    dataset = loaded(subject)
    for name, split in splits(subject).items():
        if dataset.loss == "squared_error":
            if split.y.dtype != np.float32 or not np.isfinite(split.y).all():
                raise Broken(f"{name}: targets must be finite float32, got {split.y.dtype}: {split.y[:4]}")
            continue
        if split.y.dtype != np.int64:
            raise Broken(f"{name}: labels must be int64, got {split.y.dtype}; convert them, with astype")
        low, high = int(split.y.min()), int(split.y.max())
        if dataset.loss == "cross_entropy" and not 0 <= low <= high < dataset.num_classes:
            must = f"labels must be 0 to {dataset.num_classes - 1}, as num_classes says"
            raise Broken(f"{name}: {must}, got {low} to {high}")


def classes_agree(subject: Subject) -> None:
    """What it says of itself before loading agrees with what it loads: the number of classes."""
    said, found = data_of(subject).classes, loaded(subject).num_classes
    if loaded(subject).loss == "cross_entropy" and said is not None and said != found:
        raise Broken(f"classes: must be num_classes of what is loaded, {found}, got {said}")


def images_have_statistics(subject: Subject) -> None:
    """Images have a mean and a positive deviation for each channel; what is no image has neither."""
    dataset = loaded(subject)
    channels = dataset.train.x.shape[3] if dataset.train.x.dtype == np.uint8 else 0
    lengths = (len(dataset.mean), len(dataset.std))
    if lengths != (channels, channels):
        raise Broken(f"mean and std: must have {channels} values each, one a channel of images, got {lengths}")
    if not all(value > 0 for value in dataset.std):
        raise Broken(f"std: must be positive, got {dataset.std}")


def it_loads_the_same_again(subject: Subject) -> None:
    """It loads the same samples each time, whatever the global generators hold."""
    first = splits(subject)
    again = load(subject, 1)
    for name, split in first.items():
        other = getattr(again, name)
        for key, one, two in [("x", split.x, other.x), ("y", split.y, other.y)]:
            if one.shape != two.shape or not np.array_equal(one, two, equal_nan=one.dtype.kind == "f"):
                raise Broken(
                    f"{name}: {key} must be the same each time that it is loaded, and differs; draw with a key"
                )


def it_can_be_divided(subject: Subject) -> None:
    """Its training samples can be divided."""
    data_of(subject).divide(loaded(subject).train, np.random.default_rng(0))


LAWS: Groups = (
    (it_loads,),
    (
        inputs_fit,
        labels_fit,
        classes_agree,
        images_have_statistics,
        it_loads_the_same_again,
        it_can_be_divided,
    ),
    (runs.a_scenario_can_name_it,),
    (runs.it_runs,),
    (runs.the_same_bits_again,),
    (runs.the_same_bits_on_ray,),
)
