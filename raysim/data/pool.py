"""What the data sets share whose samples lie in one pool until a partitioner divides them among clients."""

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.dirichlet import Dirichlet, DirichletClients
from raysim.data.own_test import divide_alike
from raysim.data.partition import Iid, Natural, Partitioner
from raysim.data.shards import Classes, Shards
from raysim.part import Count, Fraction, OneOf, Part

PARTITIONS: tuple[type[Partitioner], ...] = (Iid, Dirichlet, DirichletClients, Shards, Classes, Natural)
Partition = Annotated[Partitioner, OneOf(PARTITIONS)]

Share = Annotated[float, Field(gt=0, lt=1)]  # neither nothing nor all


class PooledData(Part):
    """A data set with the settings of who holds which of its samples. A subclass adds its `name`."""

    name: str
    clients: Count
    partition: Partition
    """Who holds which of the training samples."""
    local_test: Fraction | Literal["test"] = 0.0
    """What a client tests its own model on: a share of its samples, held out, or `test`: its part of the test split.

    That is divided as the training samples are: by label, or by the column of the partition. What is nobody's part
    then evaluates no model."""
    unseen: Fraction = 0.0
    """Share of the clients, the last ones, that hold samples but never take part in training."""

    @property
    def classes(self) -> int | None:
        """The number of labels; None if only loading can tell."""
        return None

    @property
    def participants(self) -> int:
        """How many clients may take part in training: the first ones."""
        return self.clients - int(self.unseen * self.clients + 1e-9)

    @abstractmethod
    def load(self) -> Dataset:
        """The data set in memory. FileNotFoundError, with the cures, where it is not on this machine."""

    def divide(self, train: Split, generator: np.random.Generator) -> list[np.ndarray]:
        """The rows of each client, int64, disjoint."""
        return self.partition.split(train, self.clients, generator)

    def divide_test(
        self, train: Split, parts: list[np.ndarray], test: Split, generator: np.random.Generator
    ) -> list[np.ndarray]:
        """The test rows of each client, int64, disjoint, where `divide` gave it these parts of the training samples."""
        return divide_alike(train, parts, test, self.partition.column, generator)

    def problems(self) -> list[str]:
        """What is wrong with the settings, as far as that can be told without data."""
        found = self.partition.problems(self.clients, self.classes)
        if self.participants == 0:
            found.append(f"`unseen` must leave a client of {self.clients} that trains, got {self.unseen:g}; lower it")
        if self.unseen and self.participants == self.clients:
            text = f"`unseen` must be 0, or make one client of {self.clients} unseen, got {self.unseen:g}"
            found.append(f"{text}, which makes none; raise it to {1 / self.clients:g}")
        return found
