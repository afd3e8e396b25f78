"""The base of data sets whose samples lie in one pool until a partitioner divides them among clients."""

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.federation.dirichlet import Dirichlet, DirichletClients
from raysim.data.federation.held_out import divide_alike
from raysim.data.federation.indices import Indices
from raysim.data.federation.partition import Iid, Natural, Partitioner
from raysim.data.federation.shards import Classes, Shards
from raysim.parts.part import Fraction, OneOf, Part

PARTITIONS: tuple[type[Partitioner], ...] = (Iid, Dirichlet, DirichletClients, Shards, Classes, Natural, Indices)
Partition = Annotated[Partitioner, OneOf(PARTITIONS, "raysim.partitions")]

Share = Annotated[float, Field(gt=0, lt=1)]  # more than nothing and less than all


class PooledData(Part):
    """A data set whose samples are divided among clients. A subclass adds its `name`."""

    name: str
    clients: Annotated[int, Field(ge=1, le=10_000_000, examples=[10])]
    """Number of clients."""
    partition: Partition
    """How the training samples are divided among the clients."""
    local_test: Fraction | Literal["test"] = 0.0
    """What a client tests its own model on: a share of its samples, which it then does not train on (0: nothing), or
    `test`: its part of the test set.

    The test set is divided as the training samples are: by label, or by the column of the partition. Test samples that
    no client gets then evaluate no model."""
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of each client's training samples, and of a server's samples in domain, that are set aside: they neither
    train nor test. Together they are the split `validation`, on which models are evaluated too, and which searches
    tune on. Clients that are unseen, and public samples, set none aside. 0: there is no such split."""
    unseen: Fraction = 0.0
    """Share of the clients that hold samples but never take part in training; they are the last ones."""

    @property
    def classes(self) -> int | None:
        """Number of labels, or None if it is known only once the data are loaded."""
        return None

    @property
    def participants(self) -> int:
        """Number of clients that may take part in training; they are the first ones."""
        return self.clients - int(self.unseen * self.clients + 1e-9)

    @abstractmethod
    def load(self) -> Dataset:
        """Loads the data set. Raises FileNotFoundError, saying what to do, if it is not on this machine."""

    def divide(self, train: Split, generator: np.random.Generator) -> list[np.ndarray]:
        """Returns the training rows of each client, int64. Raises ValueError if the partition divides wrongly."""
        parts = self.partition.split(train, self.clients, generator)
        if wrong := self.partition.wrong_with(parts, len(train), self.clients):
            raise ValueError(f"{self.partition.name}.split: {wrong}")
        return parts

    def divide_test(
        self, train: Split, parts: list[np.ndarray], test: Split, generator: np.random.Generator
    ) -> list[np.ndarray]:
        """Returns the test rows of each client, int64, disjoint. parts: what `divide` returned for `train`."""
        return divide_alike(train, parts, test, self.partition.column, generator)

    def problems(self) -> list[str]:
        """Lists what is wrong with the settings, as far as can be told without data."""
        found = self.partition.problems(self.clients, self.classes)
        if self.participants == 0:
            found.append(f"`unseen` must leave a client of {self.clients} that trains, got {self.unseen:g}; lower it")
        if self.unseen and self.participants == self.clients:
            text = f"`unseen` must be 0, or make one client of {self.clients} unseen, got {self.unseen:g}"
            found.append(f"{text}, which makes none; raise it to {1 / self.clients:g}")
        return found
