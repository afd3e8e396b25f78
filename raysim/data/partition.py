"""Who holds which samples: what all partitioners share, and the two plainest of them."""

from abc import abstractmethod

import numpy as np

from raysim.data.dataset import Split
from raysim.part import Part


class Partitioner(Part):
    """Divides the training samples among the clients. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        """The rows of each client, int64, disjoint. ValueError, with a cure, if these samples cannot be divided so."""

    @property
    def column(self) -> str | None:
        """What samples are divided by: `label`, or a column's name; None: by chance alone."""
        return "label"

    def problems(self, clients: int, num_classes: int | None) -> list[str]:
        """What is wrong with the settings, as far as that can be told without data. num_classes: None if unknown."""
        del clients, num_classes
        return []


class Iid(Partitioner):
    """Shuffled and cut in equal parts: every client has the same mix of labels."""

    name: str = "iid"

    @property
    def column(self) -> None:
        return None

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        need(self.name, len(split), clients)
        return np.array_split(generator.permutation(len(split)), clients)


class Natural(Partitioner):
    """One client per distinct value of a column, such as a writer or a speaker."""

    name: str = "natural"
    by: str = "user"
    """The column."""
    shuffle: bool = False
    """Which values become clients where there are more: the first in sorted order, or random ones."""

    @property
    def column(self) -> str:
        return self.by

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        groups = rows_by_value(split.column(self.by))
        if len(groups) < clients:
            raise ValueError(
                f"partition natural: `clients` must be at most the number of distinct values of {self.by!r}, "
                f"{len(groups)}, got {clients}; lower `clients`"
            )
        chosen = generator.permutation(len(groups)) if self.shuffle else np.arange(len(groups))
        return [groups[group] for group in chosen[:clients]]


def need(name: str, samples: int, parts: int) -> None:
    """ValueError unless there is a sample for every part."""
    if samples < parts:
        raise ValueError(
            f"partition {name}: needs at least one training sample for each of {parts} parts, got {samples}; "
            "lower `clients`"
        )


def rows_by_value(values: np.ndarray) -> list[np.ndarray]:
    """For each distinct value, in sorted order, the rows that have it, ascending."""
    _, counts = np.unique(values, return_counts=True)
    return np.split(np.argsort(values, kind="stable"), np.cumsum(counts)[:-1])


def deal(groups: list[np.ndarray], counts: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """Gives client j `counts[k, j]` random rows of group k, none of them twice. counts: (groups, clients)."""
    dealt = []
    for rows, ends in zip(groups, np.cumsum(counts, axis=1), strict=True):
        dealt.append(np.split(generator.permutation(rows)[: ends[-1]], ends[:-1]))
    return [np.concatenate(parts) for parts in zip(*dealt, strict=True)]
