"""When clients can be picked, and whether they report back."""

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from raysim.part import Fraction, Named, Part, Positive
from raysim.rng import generator


class Availability(Part):
    """Which clients can be picked. It changes only at multiples of `slot`, in the world's unit of time."""

    slot: Positive = 1.0

    @abstractmethod
    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        """Who is available at the time, (clients,)."""


class Always(Availability):
    """Everybody, always."""

    name: Literal["always"] = "always"

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        return np.ones(clients, dtype=bool)


class RandomAvailability(Availability):
    """In each slot, each client with the given probability."""

    name: Literal["random"] = "random"
    probability: Annotated[float, Field(gt=0, le=1)]

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        slot = int(time // self.slot)
        return generator(seed, "availability", slot).random(clients) < self.probability


class Periodic(Availability):
    """On for a share of every period, each client with a phase of its own: day and night."""

    name: Literal["periodic"] = "periodic"
    period: Positive
    on: Annotated[float, Field(gt=0, le=1)] = 0.5

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        start = time // self.slot * self.slot
        phases = generator(seed, "availability").random(clients)
        return (start / self.period + phases) % 1.0 < self.on


AnyAvailability = Annotated[Always | RandomAvailability | Periodic, Field(discriminator="name"), Named]


class Dropout(Part):
    """Picked clients that never report: the update is lost, and the client is idle again when it would have arrived."""

    probability: Fraction = 0.0  # of each dispatch
    permanent: bool = False  # a client that dropped out once is never picked again
