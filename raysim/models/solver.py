"""The solvers with which deep equilibrium layers find their fixed points, as a scenario file names them."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raysim.part import Count, NonNegative, Part, Positive


class Solver(Part):
    """How a fixed point is found. A subclass adds its `name`."""

    name: str
    tolerance: Positive
    """Largest |g(z) - z| / |g(z)| at which a sample counts as converged."""
    max_iterations: Count = 20
    """Number of applications of g after which a solve ends as unconverged."""


class Iteration(Solver):
    """Plain fixed-point iteration, which replaces z by g(z)."""

    name: str = "iteration"
    tolerance: Positive = 1e-2


class Anderson(Solver):
    """Anderson acceleration: steps from the best mixture of the last points (Walker and Ni 2011)."""

    name: str = "anderson"
    tolerance: Positive = 1e-3
    history: Annotated[int, Field(ge=2)] = 5
    """Number of last points that are mixed. Until there are so many, steps are plain ones."""
    ridge: NonNegative = 1e-4
    """Penalty on the squared coefficients of the mixture, relative to the largest squared residual that is mixed."""
    damping: Positive = 1.0
    """Size of the step from the mixture of points towards the mixture of their images; 1: the whole way."""

    @model_validator(mode="after")
    def _mixes(self) -> Self:
        if self.history >= self.max_iterations:
            raise ValueError(
                f"history must be less than max_iterations, {self.max_iterations}, or nothing is ever mixed, got "
                f"{self.history}; lower it, or take `name: iteration`"
            )
        return self


SOLVERS: tuple[type[Solver], ...] = (Iteration, Anderson)
Backward = Literal["jacobian_free", "implicit"]
Start = Literal["zeros", "injection", "last"]
