"""Partitioners decide which client holds which samples: their base, and the two plainest of them."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from raysim.data.dataset import Split
from raysim.data.federation.sizes import SIZES, EqualSizes, Sizes
from raysim.data.sources.subset import pieces, rows_by_value
from raysim.parts.errors import BadInput, BadValue
from raysim.parts.part import OneOf, Part


class Partitioner(Part):
    """Divides the training samples among the clients. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        """Returns the rows of each client, int64, disjoint. Raises ValueError if the samples cannot be divided so."""

    @property
    def column(self) -> str | None:
        """What samples are divided by: `label`, a column's name, or None if by chance alone."""
        return "label"

    @property
    def may_overlap(self) -> bool:
        """Whether a sample may be held by several clients, or several times by one."""
        return False

    @property
    def may_be_empty(self) -> bool:
        """Whether a client may get no samples. It then never takes part."""
        return False

    def wrong_with(self, parts: Any, samples: int, clients: int) -> str | None:
        """Returns what is wrong with what `split` returned for so many samples and clients; None if nothing is."""
        if not isinstance(parts, Sequence) or len(parts) != clients:
            got = len(parts) if isinstance(parts, Sequence) else type(parts).__name__
            return f"must return a list with the rows of each of {clients} clients, got {got!r}"
        for client, part in enumerate(parts):
            if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype != np.int64:
                got = f"{part.dtype} of shape {part.shape}" if isinstance(part, np.ndarray) else type(part).__name__
                return f"rows must be arrays (n,) of int64, got {got} for client {client}"
        sizes = np.array([len(part) for part in parts])
        if not self.may_be_empty and not sizes.all():
            return f"client {sizes.argmin()} must get samples, got none; give it some, or raise ValueError"
        rows = np.concatenate(parts)
        if (outside := (rows < 0) | (rows >= samples)).any():
            place = outside.argmax()
            holder = np.searchsorted(sizes.cumsum(), place, side="right")
            return f"rows must be 0 to {samples - 1}, got {rows[place]} for client {holder}"
        if not self.may_overlap and (twice := np.flatnonzero(np.bincount(rows) > 1)).size:
            return f"a row must go to one client at most, got {twice[:3].tolist()} more than once"
        return None

    def problems(self, clients: int, num_classes: int | None) -> list[str]:
        """Lists what is wrong with the settings, as far as can be told without data. num_classes: None if unknown."""
        return []


class Iid(Partitioner):
    """Shuffles the samples and cuts them in parts: every client has about the same mix of labels."""

    name: str = "iid"
    sizes: Annotated[Sizes, OneOf(SIZES)] = EqualSizes()
    """How many samples each client gets."""

    @property
    def column(self) -> None:
        return None

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        need(self.name, len(split), clients)
        sizes = self.sizes.draw(len(split), clients, generator)
        return pieces(generator.permutation(len(split)), sizes)


class Natural(Partitioner):
    """Makes each distinct value of a column a client, such as each writer or speaker."""

    name: str = "natural"
    by: str = "user"
    """Name of the column."""
    shuffle: bool = False
    """Which values become clients if there are more values than clients. false: the first ones in sorted order. true:
    random ones."""

    @property
    def column(self) -> str:
        return self.by

    def split(self, split: Split, clients: int, generator: np.random.Generator) -> list[np.ndarray]:
        groups = rows_by_value(split.column(self.by))
        if len(groups) < clients:
            raise BadInput(
                "data.clients",
                f"must be at most the number of distinct values of {self.by!r}, "
                f"{len(groups)}, got {clients}; lower `clients`",
            )
        chosen = generator.permutation(len(groups)) if self.shuffle else np.arange(len(groups))
        return [groups[group] for group in chosen[:clients]]


def need(name: str, samples: int, parts: int) -> None:
    """Raises ValueError unless there is a sample for every part."""
    if samples < parts:
        raise BadValue(
            f"{name} needs at least one training sample for each of {parts} parts, got {samples}; lower `clients`"
        )


def deal(groups: list[np.ndarray], counts: np.ndarray, generator: np.random.Generator) -> list[np.ndarray]:
    """Gives client j `counts[k, j]` random rows of group k, none of them twice. counts: (groups, clients)."""
    dealt = []
    for rows, sizes in zip(groups, counts, strict=True):
        dealt.append(pieces(generator.permutation(rows), sizes))
    return [np.concatenate(parts) for parts in zip(*dealt, strict=True)]
