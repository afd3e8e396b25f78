"""The schedules that raysim comes with. To add one, put it into `SCHEDULES`."""

import bisect
import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from raysim.parts.part import Fraction, Positive
from raysim.schedules.schedule import HUGE, TINY, Schedule, between


class ConstantSchedule(Schedule):
    """The value stays the same once `warmup` is over."""

    name: str = "constant"
    value: Annotated[float, Field(examples=[0.1])]
    """The value."""

    def curve(self, position: float) -> float:
        return self.value

    @property
    def values(self) -> tuple[float, float]:
        return self.value, self.value


class StepSchedule(Schedule):
    """The value is multiplied by a factor at regular intervals, or at given milestones."""

    name: str = "step"
    start: Annotated[float, Field(examples=[0.1])]
    """The first value."""
    factor: Positive = 0.1
    """Factor by which the value is multiplied each time."""
    every: Annotated[Positive | None, Field(examples=[5.0])] = None
    """How many rounds (or versions ...) lie between two changes. null: `milestones` are given."""
    milestones: tuple[Positive, ...] = ()
    """When the value changes, in rising order. (): at multiples of `every`."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.every is None) == (not self.milestones):
            raise ValueError("either `every` or `milestones` must be given, and not both")
        if list(self.milestones) != sorted(self.milestones):
            raise ValueError(f"`milestones` must rise, got {list(self.milestones)}")
        return self

    def curve(self, position: float) -> float:
        changes = bisect.bisect_right(self.milestones, position) if self.every is None else position // self.every
        return float(self.start * self.factor**changes)

    @property
    def values(self) -> tuple[float, float]:
        milestones = self.start * self.factor ** len(self.milestones)
        last = milestones if self.every is None else _limit(self.start, self.factor)
        return min(self.start, last), max(self.start, last)


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
        last = _limit(self.start, self.factor) if self.end is None else self.end
        return min(self.start, last), max(self.start, last)


class _FromTo(Schedule):
    """Goes from one value to another within a given length."""

    start: Annotated[float, Field(examples=[0.1])]
    """The first value."""
    end: float = 0.0
    """The last value."""
    length: Annotated[Positive, Field(examples=[10.0])]
    """After how many rounds (or versions ...), not counting `warmup`, the last value is reached."""

    @property
    def values(self) -> tuple[float, float]:
        return between(self.start, self.end)


class PolynomialSchedule(_FromTo):
    """end + (start - end) (1 - t / length)^power up to t = length, and `end` from then on; power 1 is a line."""

    name: str = "polynomial"
    power: Positive = 1.0
    """The power: above 1, most of the change comes first."""

    def curve(self, position: float) -> float:
        left = max(1 - position / self.length, 0.0)
        return float(self.end + (self.start - self.end) * left**self.power)


class CosineSchedule(_FromTo):
    """end + (start - end) (1 + cos(pi t / length)) / 2 up to t = length, and `end` from then on."""

    name: str = "cosine"

    def curve(self, position: float) -> float:
        return _half_cosine(self.start, self.end, min(position / self.length, 1.0))


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


def _limit(start: float, factor: float) -> float:
    """Returns what a value comes to that is multiplied again and again."""
    return start if factor == 1 else math.copysign(TINY if factor < 1 else HUGE, start)


def _half_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


SCHEDULES: tuple[type[Schedule], ...] = (
    ConstantSchedule,
    StepSchedule,
    ExponentialSchedule,
    PolynomialSchedule,
    CosineSchedule,
    OneCycleSchedule,
)
