"""Numbers that change during a run: the base of schedules, and those that raysim comes with.

To add one, put it into `SCHEDULES`.
"""

import bisect
import math
import sys
from abc import abstractmethod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.part import Fraction, NonNegative, Part, Positive
from raysim.terms import Moment

# Values that fall towards 0 stay at TINY or above, and values that grow without end stay at HUGE or below.
TINY, HUGE = sys.float_info.min, sys.float_info.max


class Schedule(Part):
    """A number that changes during a run. A subclass adds its `name`.

    A client trains with the value at the moment of its dispatch: it follows the server's rounds and versions, not how
    often the client took part. A server's step, and a peer's mixing, take the value at their own moment.
    """

    name: str
    over: Literal["rounds", "versions", "time", "steps"] = "rounds"
    """What the value changes with. rounds: rounds that are over. versions: steps that the server has done or, without a
    server, that the peer has mixed. time: virtual time, in the unit of the world's delays. steps: mini-batches within
    one training, counted anew in each training; only for `local.lr`."""
    warmup: NonNegative = 0.0
    """How long the value rises at first, in rounds, versions, units of time or steps. Then the curve itself starts."""
    warmup_from: Fraction = 0.1
    """Share of its first value with which the rise begins."""

    @abstractmethod
    def curve(self, position: float) -> float:
        """Returns the value after the warm-up. position: how many rounds (or versions ...) have passed since then."""

    @property
    @abstractmethod
    def values(self) -> tuple[float, float]:
        """Two numbers between which all values of the curve lie. One that only tends to 0 has TINY as a bound."""

    def at(self, moment: Moment) -> float:
        """Returns the value at a moment of the run. Raises ValueError if it changes with steps of a training."""
        if self.over == "steps":
            raise ValueError("a schedule over steps has no value outside of training; it is for local.lr")
        return self.after(moment.time if self.over == "time" else getattr(moment, self.over[:-1]))

    def after(self, position: float) -> float:
        """Returns the value when so many rounds (or versions ...) have passed since the start."""
        if position < self.warmup:
            return self.curve(0.0) * (self.warmup_from + (1 - self.warmup_from) * position / self.warmup)
        return self.curve(position - self.warmup)

    @property
    def bounds(self) -> tuple[float, float]:
        """Two numbers between which all values lie, including those of the warm-up."""
        least, most = self.values
        if self.warmup:
            first = self.curve(0.0) * self.warmup_from
            least, most = min(least, first), max(most, first)
        return least, most


def between(start: float, end: float) -> tuple[float, float]:
    """Returns the values of a schedule that goes from one to the other. An end of 0 counts as TINY: a run that is no
    longer than the schedule does not reach it."""
    end = end or TINY
    return min(start, end), max(start, end)


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
