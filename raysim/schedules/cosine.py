"""A number that goes from one value to another along half a cosine."""

import math
from typing import Annotated

from pydantic import Field

from raysim.parts.part import Positive
from raysim.schedules.schedule import Schedule, between


class CosineSchedule(Schedule):
    """end + (start - end) (1 + cos(pi t / length)) / 2 up to t = length, and `end` from then on."""

    name: str = "cosine"
    start: Annotated[float, Field(examples=[0.1])]
    """The first value."""
    end: float = 0.0
    """The last value."""
    length: Annotated[Positive, Field(examples=[10.0])]
    """After how many rounds (or versions ...), not counting `warmup`, the last value is reached."""

    def curve(self, position: float) -> float:
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * min(position / self.length, 1.0))) / 2

    @property
    def values(self) -> tuple[float, float]:
        return between(self.start, self.end)
