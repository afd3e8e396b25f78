"""The laws of data sets and partitions: what they load fits together, and who holds which samples."""

from functools import lru_cache

import numpy as np

from raysim.data.dataset import Split
from raysim.data.loaded import load, wrong_with
from raysim.data.named import same
from raysim.laws.runs import RUNS, the_same_bits_on_ray
from raysim.laws.subject import Broken, Groups, NotTried, Subject


def what_it_loads_fits_together(subject: Subject) -> None:
    """Inputs, labels, their types and shapes, the number of classes and statistics of images fit each other."""
    if wrong := wrong_with(subject.made.load(), subject.made.classes):
        raise Broken(f"{subject.name}.load: {wrong}")


SAMPLES, LABELS, USERS = 600, 10, 12


def _samples(subject: Subject) -> Split:
    """Returns new copies of samples to be divided: labelled ones of several users, or those of the user's own file."""
    if subject.brings_data:
        found = _loaded(subject)
        return found.take(np.arange(len(found)))
    draw = np.random.default_rng(0)
    label = draw.integers(LABELS, size=SAMPLES)
    x = draw.standard_normal((SAMPLES, 2)).astype(np.float32)
    return Split(x, label, {"user": draw.integers(USERS, size=SAMPLES)})


@lru_cache(maxsize=1)
def _loaded(subject: Subject) -> Split:
    return load(subject.scenario.data).train


def divided(subject: Subject, seed: int = 0) -> list[np.ndarray]:
    """Returns the rows of each client under a seed."""
    generator = np.random.default_rng(seed)
    rows: list[np.ndarray] = subject.made.split(_samples(subject), subject.clients, generator)
    return rows


def every_sample_goes_to_one_client(subject: Subject) -> None:
    """Each sample goes to at most one client, and every client has some, unless it says otherwise."""
    if wrong := subject.made.wrong_with(divided(subject), len(_samples(subject)), subject.clients):
        raise Broken(f"split: {wrong}")


def another_seed_divides_otherwise(subject: Subject) -> None:
    """Another seed divides otherwise, if it draws at all."""
    generator = np.random.default_rng(0)
    before = str(generator.bit_generator.state)
    first = subject.made.split(_samples(subject), subject.clients, generator)
    if str(generator.bit_generator.state) == before:
        raise NotTried("it draws nothing: the data alone say who holds what")
    if all(np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(first, divided(subject, 1), strict=True)):
        raise Broken("split: another seed must divide otherwise, got the same rows for every client")


def samples_are_not_changed(subject: Subject) -> None:
    """It does not change the samples that it divides."""
    given, before = _samples(subject), _samples(subject)
    subject.made.split(given, subject.clients, np.random.default_rng(0))
    for key, one, other in [("x", given.x, before.x), ("y", given.y, before.y)]:
        if not same(one, other):
            raise Broken(f"split: must not change what it is given, but changed {key}; copy it first")


def its_column_is_there(subject: Subject) -> None:
    """Its column is label, another column of the samples, or None."""
    if (column := subject.made.column) is not None:
        _samples(subject).column(column)


DATA: Groups = ((what_it_loads_fits_together,), *RUNS, (the_same_bits_on_ray,))
PARTITION: Groups = (
    (
        every_sample_goes_to_one_client,
        another_seed_divides_otherwise,
        samples_are_not_changed,
        its_column_is_there,
    ),
    *RUNS,
)
