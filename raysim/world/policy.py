"""How clients are picked among those that are idle and available."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raysim.parts.part import Part


class Policy(Part):
    """How clients are picked among those that are idle and available. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def pick(
        self, idle: NDArray[np.int64], wanted: int, samples: NDArray[np.int64], generator: np.random.Generator
    ) -> Sequence[int]:
        """Returns some of the idle clients, at most as many as are wanted, none of them twice.

        idle: numbers of at least one client, ascending. wanted: at least 1; there may be fewer idle clients. samples:
        the number of samples that each client trains on, (clients,). generator: draws of this dispatch.
        """


class UniformPolicy(Policy):
    """Clients are picked uniformly at random."""

    name: str = "uniform"

    def pick(
        self, idle: NDArray[np.int64], wanted: int, samples: NDArray[np.int64], generator: np.random.Generator
    ) -> list[int]:
        picked: list[int] = idle[self.places(len(idle), wanted, generator)].tolist()
        return picked

    def places(self, idle: int, wanted: int, generator: np.random.Generator) -> list[int]:
        """Returns the places of those that are picked in the list of idle clients. idle: its length."""
        if wanted == 1:  # takes a tenth of the time of `choice`
            return [int(generator.integers(idle))]
        places: list[int] = generator.choice(idle, size=min(wanted, idle), replace=False).tolist()
        return places


class BySamples(Policy):
    """Clients with more samples are picked more often: in each draw, with probability in proportion to samples."""

    name: str = "by_samples"

    def pick(
        self, idle: NDArray[np.int64], wanted: int, samples: NDArray[np.int64], generator: np.random.Generator
    ) -> list[int]:
        shares = samples[idle] / samples[idle].sum()
        picked: list[int] = generator.choice(idle, size=min(wanted, len(idle)), replace=False, p=shares).tolist()
        return picked


POLICIES: tuple[type[Policy], ...] = (UniformPolicy, BySamples)
