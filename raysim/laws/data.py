"""The laws of data sets and partitions; any run checks what they load, and who holds which samples."""

from functools import lru_cache

import numpy as np

from raysim.data.dataset import Split
from raysim.data.loaded import load
from raysim.laws.runs import RUNS, the_same_bits_on_ray
from raysim.laws.subject import Broken, Groups, NotTried, Subject

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


def another_seed_divides_otherwise(subject: Subject) -> None:
    """Another seed divides otherwise, if it draws at all."""
    generator = np.random.default_rng(0)
    before = str(generator.bit_generator.state)
    first = subject.made.split(_samples(subject), subject.clients, generator)
    if str(generator.bit_generator.state) == before:
        raise NotTried("it draws nothing: the data alone say who holds what")
    if all(np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(first, divided(subject, 1), strict=True)):
        raise Broken("split: another seed must divide otherwise, got the same rows for every client")


DATA: Groups = (*RUNS, (the_same_bits_on_ray,))
PARTITION: Groups = ((another_seed_divides_otherwise,), *RUNS)
