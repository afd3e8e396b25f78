"""Numbers that change as a run goes on: the base of schedules."""

import sys
from abc import abstractmethod
from typing import Literal

from raysim.parts.part import Fraction, NonNegative, Part
from raysim.terms import Moment

# Values that fall towards 0 stay at TINY or above, and values that grow without end stay at HUGE or below.
TINY, HUGE = sys.float_info.min, sys.float_info.max


class Schedule(Part):
    """A number that changes as a run goes on. A subclass adds its `name`.

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
