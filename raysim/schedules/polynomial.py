"""A number that goes from one value to another, as a power of the time that is left."""

from typing import Annotated

from pydantic import Field

from raysim.parts.part import Positive
from raysim.schedules.schedule import Schedule, between


class PolynomialSchedule(Schedule):
    """end + (start - end) (1 - t / length)^power up to t = length, and `end` from then on; power 1 is a line."""

    name: str = "polynomial"
    start: Annotated[float, Field(examples=[0.1])]
    """The first value."""
    end: float = 0.0
    """The last value."""
    length: Annotated[Positive, Field(examples=[10.0])]
    """After how many rounds (or versions ...), not counting `warmup`, the last value is reached."""
    power: Positive = 1.0
    """The power: above 1, most of the change comes first."""

    def curve(self, position: float) -> float:
        left = max(1 - position / self.length, 0.0)
        return float(self.end + (self.start - self.end) * left**self.power)

    @property
    def values(self) -> tuple[float, float]:
        return between(self.start, self.end)
