"""A data set: say here where the samples come from."""

import numpy as np

from raysim.data import Dataset, Source, Split
from raysim.parts.part import Count
from raysim.parts.rng import generator


class DataTemplate(Source):
    """Points in the plane, around a place for each of three labels."""

    name: str = "template"
    samples: Count = 600
    """Training samples of all clients together."""

    @property
    def classes(self) -> int:  # known before anything is loaded; leave it out where it is not
        return 3

    def load(self) -> Dataset:  # raise FileNotFoundError, saying what to do, where files are missing
        return Dataset(train=points(self.samples, 0), test=points(150, 1), num_classes=3)


def points(samples: int, which: int) -> Split:
    """Returns inputs (n, 2) float32 and labels (n,) int64. Images are uint8 (n, height, width, channels) instead."""
    draw = generator(0, "points", which)  # the same samples under every seed of a scenario
    label = draw.integers(3, size=samples)
    places = np.array([[0, 0], [2, 0], [1, 2]])
    x = places[label] + 0.3 * draw.standard_normal((samples, 2))
    return Split(x.astype(np.float32), label)
