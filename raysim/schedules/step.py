"""A number that is multiplied by a factor at intervals, or at given milestones."""

import bisect
import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from raysim.parts.part import Positive
from raysim.schedules.schedule import HUGE, TINY, Schedule


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
        last = self.start * self.factor ** len(self.milestones)
        if self.every is not None:
            last = math.copysign(TINY if self.factor < 1 else HUGE, self.start) if self.factor != 1 else self.start
        return min(self.start, last), max(self.start, last)
