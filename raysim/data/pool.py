"""What the data sets share whose samples lie in one pool until a partitioner divides them among clients."""

from abc import abstractmethod
from typing import Annotated

import numpy as np
from pydantic import Field

from raysim.data.dataset import Dataset, Split
from raysim.data.dirichlet import Dirichlet, DirichletClients
from raysim.data.partition import Iid, Natural
from raysim.data.shards import Classes, Shards
from raysim.part import Count, Fraction, Named, Part

PARTITIONS = (Iid, Dirichlet, DirichletClients, Shards, Classes, Natural)
Partition = Annotated[
    Iid | Dirichlet | DirichletClients | Shards | Classes | Natural, Field(discriminator="name"), Named
]


class Pool(Part):
    """A data set with the settings of who holds which of its samples."""

    clients: Count
    partition: Partition
    """Who holds which of the training samples."""
    local_test: Fraction = 0.0
    """Share of each client's samples that is held out to test its own model."""

    @property
    def classes(self) -> int | None:
        """The number of labels; None if only loading can tell."""
        return None

    @abstractmethod
    def load(self) -> Dataset:
        """The data set in memory. FileNotFoundError, with the cures, where it is not on this machine."""

    def divide(self, train: Split, generator: np.random.Generator) -> list[np.ndarray]:
        """The rows of each client, int64, disjoint."""
        return self.partition.split(train, self.clients, generator)

    def problems(self) -> list[str]:
        """What is wrong with the settings, as far as that can be told without data."""
        return self.partition.problems(self.clients, self.classes)
