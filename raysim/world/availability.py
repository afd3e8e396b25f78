"""When clients can be picked, and whether they report back."""

import math
from abc import abstractmethod
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raysim.part import Fraction, Part, Positive
from raysim.rng import generator


class Availability(Part):
    """Which clients can be picked. Times are in the world's unit. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        """Who is available at the time, (clients,)."""

    @abstractmethod
    def next_change(self, time: float) -> float:
        """When that may change, later than the time; infinite: never."""


class Always(Availability):
    """Everybody, always."""

    name: str = "always"

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        return np.ones(clients, dtype=bool)

    def next_change(self, time: float) -> float:
        return math.inf


class Slotted(Availability):
    """Availability that changes only at multiples of `slot`."""

    slot: Positive = 1.0
    """Clients come and go only at multiples of it, in the unit of the world's delay: rounds or seconds."""

    def number(self, time: float) -> int:
        """Of the slot: the largest k whose start, the floating-point number `k * slot`, is not after the time."""
        nearest = round(time / self.slot)
        return nearest if nearest * self.slot <= time else nearest - 1

    def next_change(self, time: float) -> float:
        return (self.number(time) + 1) * self.slot


class RandomAvailability(Slotted):
    """In each slot, each client with the given probability."""

    name: str = "random"
    probability: Annotated[float, Field(gt=0, le=1)]

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        return generator(seed, "availability", self.number(time)).random(clients) < self.probability


class Periodic(Slotted):
    """On for a share of every period, each client with a phase of its own: day and night."""

    name: str = "periodic"
    period: Positive
    """In the unit of the world's delay."""
    on: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The share of the period."""

    @model_validator(mode="after")
    def _everybody_comes(self) -> Self:
        if self.slot > self.on * self.period:
            raise ValueError(
                f"`slot` must be at most `on` * `period`, {self.on * self.period:g}, or some clients are never there, "
                f"got {self.slot:g}; lower it"
            )
        return self

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        start = self.number(time) * self.slot
        phases = generator(seed, "availability").random(clients)
        return (start / self.period + phases) % 1.0 < self.on


AVAILABILITY: tuple[type[Availability], ...] = (Always, RandomAvailability, Periodic)


class Dropout(Part):
    """Picked clients that never report: the update is lost, and the client is idle again when it would have arrived."""

    probability: Fraction = 0.0
    """That a dispatch is lost."""
    permanent: bool = False
    """Whether a client that dropped out once is never picked again."""
