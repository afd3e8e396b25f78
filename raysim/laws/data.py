"""The laws of data sets: what they load fits their labels, is the same each time, and can be divided."""

from functools import lru_cache

from raysim.data.dataset import Dataset
from raysim.data.loaded import wrong_with
from raysim.data.named import same
from raysim.laws import runs
from raysim.laws.law import Broken, Groups
from raysim.laws.subject import Subject
from raysim.parts.process import isolated
from raysim.parts.rng import seed_globals


@lru_cache(maxsize=1)
def loaded(subject: Subject) -> Dataset:
    """Returns the loaded data, which are loaded once."""
    return load(subject, 0)


def load(subject: Subject, seed: int) -> Dataset:
    """Loads the data. seed: is given to the global generators, so that draws from them show."""
    with isolated():
        seed_globals(seed, "load")
        found: Dataset = subject.made.load()
        return found


def what_it_loads_fits_together(subject: Subject) -> None:
    """Inputs, labels, their types and shapes, the number of classes and statistics of images fit each other."""
    if wrong := wrong_with(loaded(subject), subject.made.classes):
        raise Broken(f"{subject.name}.load: {wrong}")


def it_loads_the_same_again(subject: Subject) -> None:
    """It loads the same samples each time, whatever the global generators hold."""
    first, again = loaded(subject), load(subject, 1)
    for name, split, other in (("train", first.train, again.train), ("test", first.test, again.test)):
        for key, one, two in [("x", split.x, other.x), ("y", split.y, other.y)]:
            if not same(one, two):
                must = "must be the same each time that it is loaded, and differs; draw with a key"
                raise Broken(f"{name}: {key} {must}")


LAWS: Groups = ((what_it_loads_fits_together,), (it_loads_the_same_again,), *runs.RUNS, (runs.the_same_bits_on_ray,))
