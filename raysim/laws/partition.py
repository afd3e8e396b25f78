"""The laws of partitions: who holds which samples."""

from functools import lru_cache

import numpy as np

from raysim.data.dataset import Split
from raysim.data.loaded import load
from raysim.data.named import same
from raysim.laws.law import Broken, Groups, NotTried
from raysim.laws.runs import RUNS
from raysim.laws.subject import Subject
from raysim.parts.process import isolated
from raysim.parts.rng import seed_globals

SAMPLES, LABELS, USERS = 600, 10, 12


def samples(subject: Subject) -> Split:
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
    rows: list[np.ndarray] = subject.made.split(samples(subject), subject.clients, generator)
    return rows


def every_sample_goes_to_one_client(subject: Subject) -> None:
    """Each sample goes to at most one client, and every client has some, unless it says otherwise."""
    if wrong := subject.made.wrong_with(divided(subject), len(samples(subject)), subject.clients):
        raise Broken(f"split: {wrong}")


def the_same_seed_divides_alike(subject: Subject) -> None:
    """A seed decides how samples are divided, whatever the global generators hold."""
    with isolated():
        seed_globals(1, "divide")  # so that draws from the global generators show
        first = divided(subject)
        seed_globals(2, "divide")
        again = divided(subject)
    for client, (one, other) in enumerate(zip(first, again, strict=True)):
        if not np.array_equal(np.sort(one), np.sort(other)):
            text = "must get the same samples under the same seed, and gets others; draw from the generator given"
            raise Broken(f"split: client {client} {text}")


def another_seed_divides_otherwise(subject: Subject) -> None:
    """Another seed divides otherwise, if it draws at all."""
    generator = np.random.default_rng(0)
    before = str(generator.bit_generator.state)
    first = subject.made.split(samples(subject), subject.clients, generator)
    if str(generator.bit_generator.state) == before:
        raise NotTried("it draws nothing: the data alone say who holds what")
    if all(np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(first, divided(subject, 1), strict=True)):
        raise Broken("split: another seed must divide otherwise, got the same rows for every client")


def samples_are_not_changed(subject: Subject) -> None:
    """It does not change the samples that it divides."""
    given, before = samples(subject), samples(subject)
    subject.made.split(given, subject.clients, np.random.default_rng(0))
    for key, one, other in [("x", given.x, before.x), ("y", given.y, before.y)]:
        if not same(one, other):
            raise Broken(f"split: must not change what it is given, but changed {key}; copy it first")


def its_column_is_there(subject: Subject) -> None:
    """Its column is label, another column of the samples, or None."""
    if (column := subject.made.column) is not None:
        samples(subject).column(column)


LAWS: Groups = (
    (
        every_sample_goes_to_one_client,
        the_same_seed_divides_alike,
        another_seed_divides_otherwise,
        samples_are_not_changed,
        its_column_is_there,
    ),
    *RUNS,
)
