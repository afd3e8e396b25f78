"""A number that rises to a peak and falls far below where it started."""

import math
from typing import Annotated

from pydantic import Field

from raysim.parts.part import Fraction, Positive
from raysim.schedules.schedule import Schedule, between


class OneCycleSchedule(Schedule):
    """Rises from peak / rise_by to the peak, then falls to peak / fall_by, along half cosines (Smith, Topin 2018)."""

    name: str = "one_cycle"
    peak: Annotated[float, Field(examples=[0.1])]
    """The largest value."""
    length: Annotated[Positive, Field(examples=[10.0])]
    """After how many rounds (or versions ...), not counting `warmup`, the last value is reached."""
    rise: Fraction = 0.3
    """Share of `length` that the rise takes."""
    rise_by: Positive = 25.0
    """The peak divided by the first value."""
    fall_by: Positive = 250_000.0
    """The peak divided by the last value."""

    def curve(self, position: float) -> float:
        first, last, top = self.peak / self.rise_by, self.peak / self.fall_by, self.rise * self.length
        if position < top:
            return _half_cosine(first, self.peak, position / top)
        rest = self.length - top
        return _half_cosine(self.peak, last, min((position - top) / rest, 1.0) if rest else 1.0)

    @property
    def values(self) -> tuple[float, float]:
        lowest, highest = sorted((self.peak / self.rise_by, self.peak / self.fall_by))
        return between(min(lowest, self.peak), max(highest, self.peak))


def _half_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
