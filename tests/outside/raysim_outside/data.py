"""A data set, a partition with sizes, a feature skew and server data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raysim.data import Dataset, FeatureSkew, Partitioner, ServerData, Sizes, Source, Split
from raysim.data.federation.server import NO_ROWS, Rows, ServerSamples
from raysim.parts.part import Count, Positive
from raysim.parts.rng import generator as keyed


class Points(Source):
    """Clouds of points, one for each label."""

    name: str = "outside_points"
    spread: Positive = 0.5
    """Standard deviation of a cloud."""

    @property
    def classes(self) -> int:
        return 3

    def load(self) -> Dataset:
        return Dataset(self._split(120, 0), self._split(60, 1), num_classes=3)

    def _split(self, samples: int, which: int) -> Split:
        draw = keyed(0, "outside points", which)
        label = np.arange(samples) % 3
        x = np.eye(3)[label] + self.spread * draw.standard_normal((samples, 3))
        return Split(x.astype(np.float32), label)


class Turns(Partitioner):
    """Clients take shuffled samples in turn."""

    name: str = "outside_turns"
    at_a_time: Count = 1
    """How many samples a client takes in its turn."""

    @property
    def column(self) -> None:
        return None

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        rows, turn = generator.permutation(len(split)), np.arange(len(split)) // self.at_a_time % clients
        return [rows[turn == client] for client in range(clients)]


class FirstHasMore(Sizes):
    """The first client gets twice as much as any other."""

    name: str = "outside_first_has_more"

    def shares(self, clients: int, generator: np.random.Generator) -> np.ndarray:
        return 1.0 + (np.arange(clients) == 0)


class Negative(FeatureSkew):
    """Every other client has negatives."""

    name: str = "outside_negative"

    def change(
        self, x: np.ndarray, client: int, clients: int, draw: Callable[[int], np.random.Generator]
    ) -> np.ndarray:
        return 1 - x if client % 2 else x


class FirstRows(ServerData):
    """The server has the first test samples."""

    name: str = "outside_first_rows"
    samples: Count = 6
    """How many."""

    def draw(self, dataset: Dataset, available: Rows, generator: np.random.Generator) -> tuple[ServerSamples, Rows]:
        rows, none = available["test"][: self.samples], dataset.test.take(NO_ROWS["test"])
        test = dataset.test.take(rows)
        return ServerSamples(test, dataset.num_classes, dataset.mean, dataset.std, True, none), {
            **NO_ROWS,
            "test": rows,
        }
