"""Distributions of non-negative quantities: delays, speeds, bandwidths."""

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from raysim.parts.part import NonNegative, OneOf, Part, Positive, Unit

DRAWN = Unit("drawn")
"""The unit of what a distribution draws, `Distribution.drawn_in`."""


class Distribution(Part):
    """A distribution of numbers that are at least 0. A subclass adds its `name`."""

    drawn_in: ClassVar[str] = ""
    """Unit of the draws; empty where what holds the distribution says it."""

    name: str

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = super().__get_pydantic_json_schema__(core, handler)
        for value in handler.resolve_ref_schema(schema)["properties"].values():
            if value.get("unit") == DRAWN.text:
                value["unit"] = cls.drawn_in
        return schema

    @abstractmethod
    def draw(self, generator: np.random.Generator) -> float:
        """Returns one draw, at least 0."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The largest lower bound and the smallest upper bound of all draws."""


class Constant(Distribution):
    """All draws are `value`."""

    name: str = "constant"
    value: Annotated[NonNegative, DRAWN]
    """The value of all draws, in the unit of what is drawn."""

    @property
    def bounds(self) -> tuple[float, float]:
        return self.value, self.value

    def draw(self, generator: np.random.Generator) -> float:
        return self.value


class HalfNormal(Distribution):
    """Draws are |N(0, sigma^2)|, on average 0.8 sigma, like the delays that FedBuff's authors saw."""

    name: str = "half_normal"
    sigma: Annotated[NonNegative, DRAWN]
    """Standard deviation of the normal distribution, in the unit of what is drawn; the mean of draws is 0.8 sigma."""

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, math.inf if self.sigma else 0.0

    def draw(self, generator: np.random.Generator) -> float:
        return abs(float(generator.standard_normal())) * self.sigma


class LogNormal(Distribution):
    """Draws are median * exp(sigma * N(0, 1)): a few are very large."""

    name: str = "log_normal"
    median: Annotated[Positive, DRAWN]
    """Median of draws, in the unit of what is drawn."""
    sigma: NonNegative
    """Standard deviation of the logarithm. With 0.5, one draw in six is above 1.6 times the median; with 1, above 2.7
    times."""

    @property
    def bounds(self) -> tuple[float, float]:
        return (0.0, math.inf) if self.sigma else (self.median, self.median)

    def draw(self, generator: np.random.Generator) -> float:
        return self.median * float(np.exp(self.sigma * generator.standard_normal()))


class Uniform(Distribution):
    """Draws are uniform between `low` and `high`."""

    name: str = "uniform"
    low: Annotated[NonNegative, DRAWN] = 0.0
    """Lower bound of draws, in the unit of what is drawn."""
    high: Annotated[NonNegative, DRAWN]
    """Upper bound of draws, in the unit of what is drawn."""

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
    """Draws are exponentially distributed with the given mean."""

    name: str = "exponential"
    mean: Annotated[NonNegative, DRAWN]
    """Mean of draws, in the unit of what is drawn."""

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, math.inf if self.mean else 0.0

    def draw(self, generator: np.random.Generator) -> float:
        return float(generator.exponential(self.mean))


DISTRIBUTIONS: tuple[type[Distribution], ...] = (Constant, HalfNormal, LogNormal, Uniform, Exponential)
AnyDistribution = Annotated[Distribution, OneOf(DISTRIBUTIONS)]


def each_drawn(base: Any, what: str) -> tuple[type[Any], ...]:
    """Returns a class for each of DISTRIBUTIONS, of which it has the name and the keys, beside those of a base that
    says what is drawn: for a base `RandomDelay`, first `ConstantDelay`. what: the same, for their docstrings."""
    made = []
    for kind in DISTRIBUTIONS:
        text = str(kind.__doc__).replace("Draws", what.capitalize()).replace("draws", what)
        content = {"__module__": base.__module__, "__annotations__": {"name": str}, "__doc__": text}
        name = kind.__name__ + base.__name__.removeprefix("Random")
        made.append(type(base)(name, (base, kind), {**content, "name": kind.model_fields["name"].default}))
    return tuple(made)
