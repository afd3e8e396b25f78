"""Functions S(s) that scale the weight of an update by its staleness s >= 0 (Xie et al. 2019, section 5.2), and the
base of algorithms that step at the end of a round, as in their papers, or by a buffer of updates, as FedBuff."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from raysim.algorithms.central import Central
from raysim.algorithms.fedavg import by_samples
from raysim.algorithms.signatures import Arrivals, Buffer, Round
from raysim.parts.errors import BadInput
from raysim.parts.part import Count, NonNegative, OneOf, is_finite
from raysim.schedules import Schedulable


class StalenessFunction(Schedulable):
    """A function S(s) of the staleness s. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def __call__(self, staleness: float) -> float:
        """S(s), between 0 and 1."""

    def of(self, staleness: float) -> float:
        """Returns S(s). Raises BadInput if it is not a finite number."""
        found = self(staleness)
        if not is_finite(found):
            text = f"must return a finite number, got {found!r} for a staleness of {staleness:g}"
            raise BadInput("algorithm.staleness", f"{self.name} {text}")
        return found


class ConstantStaleness(StalenessFunction):
    """S(s) = 1: staleness does not matter."""

    name: Literal["const", "none"] = "const"

    def __call__(self, staleness: float) -> float:
        return 1.0


class Polynomial(StalenessFunction):
    """S(s) = (1 + s)^-exponent."""

    name: str = "poly"
    exponent: NonNegative = 0.5
    """The larger, the less stale updates count (a in the paper). 0: staleness does not matter."""

    def __call__(self, staleness: float) -> float:
        return float((1.0 + staleness) ** -self.exponent)


class Hinge(StalenessFunction):
    """S(s) = 1 up to s = grace, 1 / (slope (s - grace) + 1) after."""

    name: str = "hinge"
    slope: NonNegative = 10.0
    """How fast S(s) falls above `grace` (a in the paper). 0: staleness does not matter."""
    grace: NonNegative = 4.0
    """The largest staleness at which an update counts in full (b in the paper)."""

    def __call__(self, staleness: float) -> float:
        return 1.0 if staleness <= self.grace else 1.0 / (self.slope * (staleness - self.grace) + 1.0)


STALENESS: tuple[type[StalenessFunction], ...] = (ConstantStaleness, Polynomial, Hinge)
Staleness = Annotated[StalenessFunction, OneOf(STALENESS)]


class Buffered(Central):
    """An algorithm of rounds, which can run asynchronously, too."""

    buffer: Count | None = None
    """How many updates make a server step, as in fedbuff. null: the server steps at the end of a round, and late
    updates are discarded."""
    staleness: Staleness = Polynomial()
    """With `buffer`, the factor S(s) of an update's weight, for its staleness s; by default 1 / sqrt(1 + s)."""

    @property
    def trigger(self) -> Round | Buffer:
        return Round(late="discard") if self.buffer is None else Buffer(self.buffer)

    def factors(self, arrivals: Arrivals) -> list[float]:
        """Returns the factor S(s) of each update; 1 without a buffer."""
        if self.buffer is None:
            return [1.0] * len(arrivals)
        return [self.staleness.of(arrival.staleness) for arrival in arrivals]

    def discounted(self, arrivals: Arrivals, weights: Literal["uniform", "samples"]) -> list[float]:
        """Returns the weight of each update in a mean, times its factor.

        So they sum to less than 1 where updates are stale, and the step is shorter on purpose, as in FedBuff.
        """
        factors = self.factors(arrivals)
        if weights == "uniform":
            return [factor / len(arrivals) for factor in factors]
        return [share * factor for share, factor in zip(by_samples(arrivals), factors, strict=True)]
