"""Distributions of non-negative quantities: delays, speeds, bandwidths."""

import math
from abc import abstractmethod
from typing import Annotated, Self

import numpy as np
from pydantic import model_validator

from raysim.part import NonNegative, OneOf, Part, Positive


class Distribution(Part):
    """Something to draw from. A subclass adds its `name`."""

    name: str

    @abstractmethod
    def draw(self, generator: np.random.Generator) -> float:
        """One draw, at least 0."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """Between which draws lie: the largest lower bound, and the smallest upper one."""


class Constant(Distribution):
    """Always `value`."""

    name: str = "constant"
    value: NonNegative

    @property
    def bounds(self) -> tuple[float, float]:
        return self.value, self.value

    def draw(self, generator: np.random.Generator) -> float:
        return self.value


class HalfNormal(Distribution):
    """|N(0, sigma^2)|: mean 0.8 sigma, the delays that FedBuff's authors saw."""

    name: str = "half_normal"
    sigma: NonNegative

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, math.inf if self.sigma else 0.0

    def draw(self, generator: np.random.Generator) -> float:
        return abs(float(generator.standard_normal())) * self.sigma


class LogNormal(Distribution):
    """median * exp(sigma * N(0, 1)): a few are very slow."""

    name: str = "log_normal"
    median: Positive
    sigma: NonNegative
    """Standard deviation of the logarithm: 0.5 makes one in six more than 1.6 times the median, 1 more than 2.7."""

    @property
    def bounds(self) -> tuple[float, float]:
        return (0.0, math.inf) if self.sigma else (self.median, self.median)

    def draw(self, generator: np.random.Generator) -> float:
        return self.median * float(np.exp(self.sigma * generator.standard_normal()))


class Uniform(Distribution):
    """Evenly between `low` and `high`."""

    name: str = "uniform"
    low: NonNegative = 0.0
    high: NonNegative

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"`low` must be at most `high`, got {self.low!r} and {self.high!r}; swap them")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def draw(self, generator: np.random.Generator) -> float:
        return float(generator.uniform(self.low, self.high))


class Exponential(Distribution):
    """Exponential with the given mean."""

    name: str = "exponential"
    mean: NonNegative

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, math.inf if self.mean else 0.0

    def draw(self, generator: np.random.Generator) -> float:
        return float(generator.exponential(self.mean))


DISTRIBUTIONS: tuple[type[Distribution], ...] = (Constant, HalfNormal, LogNormal, Uniform, Exponential)
AnyDistribution = Annotated[Distribution, OneOf(DISTRIBUTIONS)]
