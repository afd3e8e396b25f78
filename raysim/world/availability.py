"""When clients can be picked, and whether they report back."""

import math
from abc import abstractmethod
from typing import Annotated, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from raysim.parts.errors import BadInput
from raysim.parts.part import Part, Positive, Share, Unit, is_number
from raysim.parts.rng import generator


class Availability(Part):
    """Which clients can be picked at what time. Times are in the unit of the world's delay.

    A subclass adds its `name`.
    """

    name: str

    @abstractmethod
    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        """Returns who is available at the time, bool (clients,)."""

    @abstractmethod
    def next_change(self, time: float) -> float:
        """Returns when that may next change after the time; infinite if it never does."""

    def check(self, clients: int) -> None:
        """Raises ValueError if a file that it reads does not hold what so many clients need."""

    def presence(self, seed: int, clients: int) -> "Presence":
        """Returns who is there in one run, for a timeline, which asks at times that never decrease."""
        return AnyPresence(self, seed, clients)


class Presence(Protocol):
    """Who is there in one run, at times that never decrease, as `Availability` says it."""

    def mask(self, time: float) -> NDArray[np.bool_]: ...

    def next_change(self, time: float) -> float: ...


class AnyPresence:
    """The presence that any availability gives, by asking it for all clients each time.

    Raises BadInput if it returns a mask of another shape or type, or a next change that is not in the future, for then
    a run would never end.
    """

    def __init__(self, availability: Availability, seed: int, clients: int) -> None:
        self._availability, self._seed, self._clients = availability, seed, clients

    def mask(self, time: float) -> NDArray[np.bool_]:
        mask = self._availability.mask(self._seed, self._clients, time)
        if getattr(mask, "shape", None) != (self._clients,) or mask.dtype != bool:
            got = f"{mask.dtype} {mask.shape}" if isinstance(mask, np.ndarray) else type(mask).__name__
            raise BadInput("world.availability.mask", f"must return an array of bool ({self._clients},), got {got}")
        return mask

    def next_change(self, time: float) -> float:
        change = self._availability.next_change(time)
        if not is_number(change) or not change > time:
            must = f"must return a time after {time:g}, math.inf if nothing will change"
            raise BadInput("world.availability.next_change", f"{must}, got {change!r}")
        return change


class Always(Availability):
    """All clients are always available."""

    name: str = "always"

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        return np.ones(clients, dtype=bool)

    def next_change(self, time: float) -> float:
        return math.inf


def times_over(period: float, time: float) -> int:
    """Returns the largest k for which `k * period`, a float, is not after a time."""
    nearest = round(time / period)
    return nearest if nearest * period <= time else nearest - 1


class Slotted(Availability):
    """Availability that changes only at multiples of `slot`."""

    slot: Annotated[Positive, Unit("virtual time")] = 1.0
    """Time between changes, in the unit of the world's delay: clients come and go only at multiples of it."""

    def number(self, time: float) -> int:
        """Returns the number of the slot that the time is in."""
        return times_over(self.slot, time)

    def next_change(self, time: float) -> float:
        return (self.number(time) + 1) * self.slot


class RandomAvailability(Slotted):
    """In each slot, each client is available with the given probability."""

    name: str = "random"
    probability: Annotated[float, Field(gt=0, le=1), Unit("fraction")]
    """Probability that a client is available in a slot."""

    def mask(self, seed: int, clients: int, time: float) -> NDArray[np.bool_]:
        return generator(seed, "availability", self.number(time)).random(clients) < self.probability


class Periodic(Slotted):
    """Each client is available for a share of every period, with its own random phase, like day and night."""

    name: str = "periodic"
    period: Annotated[Positive, Field(examples=[24.0]), Unit("virtual time")]
    """Length of a period, in the unit of the world's delay: rounds or seconds."""
    on: Annotated[float, Field(gt=0, le=1), Unit("fraction")] = 0.5
    """Share of each period in which a client is available."""

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


class Dropout(Part):
    """Some picked clients never report: their update is lost, and they are idle again when it would have arrived."""

    probability: Share = 0.0
    """Probability that a picked client does not report."""
    permanent: bool = False
    """Whether a client that did not report once is never picked again."""
