"""How much less a stale update counts: functions S(s) of the staleness s >= 0 (Xie et al. 2019, section 5.2)."""

from typing import Annotated, Literal

from pydantic import Field

from raysim.part import Named, NonNegative, Part


class Constant(Part):
    """S(s) = 1: staleness does not matter."""

    name: Literal["const", "none"] = "const"

    def __call__(self, staleness: float) -> float:
        return 1.0


class Polynomial(Part):
    """S(s) = (1 + s)^-exponent."""

    name: Literal["poly"] = "poly"
    exponent: NonNegative = 0.5
    """a in the paper: 0 makes all updates weigh alike."""

    def __call__(self, staleness: float) -> float:
        return float((1.0 + staleness) ** -self.exponent)


class Hinge(Part):
    """S(s) = 1 up to s = grace, 1 / (slope (s - grace) + 1) after."""

    name: Literal["hinge"] = "hinge"
    slope: NonNegative = 10.0
    """a in the paper."""
    grace: NonNegative = 4.0
    """b in the paper."""

    def __call__(self, staleness: float) -> float:
        return 1.0 if staleness <= self.grace else 1.0 / (self.slope * (staleness - self.grace) + 1.0)


Staleness = Annotated[Constant | Polynomial | Hinge, Field(discriminator="name"), Named]
