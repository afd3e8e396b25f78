"""The laws of data sets: what they load fits their labels, is the same each time, and can be divided."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from raysim.data.dataset import Dataset, Split
from raysim.data.loaded import wrong_classes, wrong_inputs, wrong_labels, wrong_statistics, wrong_type
from raysim.laws import runs
from raysim.laws.law import Broken, Groups
from raysim.laws.subject import Subject
from raysim.parts.rng import seed_globals
from raysim.parts.standard_state import standard_state


@lru_cache(maxsize=1)
def loaded(subject: Subject) -> Dataset:
    """Returns the loaded data, which are loaded once."""
    return load(subject, 0)


def load(subject: Subject, seed: int) -> Dataset:
    """Loads the data. seed: of the global generators, so that draws from them show."""
    with standard_state():
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
    _refuse(wrong_type(loaded(subject)), f"{subject.name}.load: ")


def inputs_fit(subject: Subject) -> None:
    """Inputs are finite, of one shape in both splits, and uint8 images, int16 or int32 tokens, or float32."""
    _refuse(wrong_inputs(loaded(subject)))


def labels_fit(subject: Subject) -> None:
    """Labels are int64 from 0 up to the number of classes, or finite float32 targets."""
    _refuse(wrong_labels(loaded(subject)))


def classes_agree(subject: Subject) -> None:
    """What it says of itself before loading agrees with what it loads: the number of classes."""
    _refuse(wrong_classes(loaded(subject), data_of(subject).classes))


def images_have_statistics(subject: Subject) -> None:
    """Images have a mean and a positive deviation for each channel; what is no image has neither."""
    _refuse(wrong_statistics(loaded(subject)))


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


def _refuse(wrong: str | None, where: str = "") -> None:
    """Raises Broken if something is wrong."""
    if wrong:
        raise Broken(where + wrong)


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
