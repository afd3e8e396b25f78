"""A number that is multiplied by the same factor in each round."""

import math
from typing import Annotated

from pydantic import Field

from raysim.parts.part import Positive
from raysim.schedules.schedule import HUGE, TINY, Schedule


class ExponentialSchedule(Schedule):
    """start * factor^t: for example 0.1 * 0.998^t after t rounds."""

    name: str = "exponential"
    start: Annotated[float, Field(examples=[0.1])]
    """The first value."""
    factor: Annotated[Positive, Field(examples=[0.998])]
    """Factor by which the value is multiplied in each round (or version ...), such as 0.998."""
    end: float | None = None
    """Value at which the change stops. null: it never stops."""

    def curve(self, position: float) -> float:
        value: float = self.start * self.factor**position
        if self.end is None:
            return value
        return max(value, self.end) if self.end <= self.start else min(value, self.end)

    @property
    def values(self) -> tuple[float, float]:
        last = self.end
        if last is None:
            last = math.copysign(TINY if self.factor < 1 else HUGE, self.start) if self.factor != 1 else self.start
        return min(self.start, last), max(self.start, last)
