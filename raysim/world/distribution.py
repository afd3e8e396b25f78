"""Distributions of non-negative quantities: delays, speeds, bandwidths."""

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from raysim.part import Named, NonNegative, Part, Positive


class Distribution(Part):
    """Something to draw from."""

    @abstractmethod
    def draw(self, generator: np.random.Generator) -> float:
        """One draw, at least 0."""


class Constant(Distribution):
    """Always `value`."""

    name: Literal["constant"] = "constant"
    value: NonNegative

    def draw(self, generator: np.random.Generator) -> float:
        return self.value


class HalfNormal(Distribution):
    """|N(0, sigma^2)|: mean 0.8 sigma, the delays that FedBuff's authors saw."""

    name: Literal["half_normal"] = "half_normal"
    sigma: NonNegative

    def draw(self, generator: np.random.Generator) -> float:
        return abs(float(generator.standard_normal())) * self.sigma


class LogNormal(Distribution):
    """median * exp(sigma * N(0, 1)): a few are very slow."""

    name: Literal["log_normal"] = "log_normal"
    median: Positive
    sigma: NonNegative

    def draw(self, generator: np.random.Generator) -> float:
        return self.median * float(np.exp(self.sigma * generator.standard_normal()))


class Uniform(Distribution):
    """Evenly between `low` and `high`."""

    name: Literal["uniform"] = "uniform"
    low: NonNegative = 0.0
    high: NonNegative

    def draw(self, generator: np.random.Generator) -> float:
        return float(generator.uniform(self.low, self.high))


class Exponential(Distribution):
    """Exponential with the given mean."""

    name: Literal["exponential"] = "exponential"
    mean: NonNegative

    def draw(self, generator: np.random.Generator) -> float:
        return float(generator.exponential(self.mean))


AnyDistribution = Annotated[
    Constant | HalfNormal | LogNormal | Uniform | Exponential, Field(discriminator="name"), Named
]
