"""The solvers with which deep equilibrium layers find their fixed points, as a scenario file names them."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.part import Count, NonNegative, Part, Positive
from raysim.terms import Tensor


class Solver(Part):
    """How a fixed point is found. A subclass adds its `name`."""

    name: str
    tolerance: Positive
    """Largest |g(z) - z| / |g(z)| at which a sample counts as converged."""
    max_iterations: Count = 20
    """Number of applications of g after which a solve ends as unconverged."""

    @abstractmethod
    def steps(self, start: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Returns a function that makes the next points of a solve from its last points and their images under g.

        start: the first points, (B, D). The function is called once for each application of g. It takes and returns
        (B, D) too, and what it returns for a sample must not depend on the other samples.
        """


class Iteration(Solver):
    """Plain fixed-point iteration, which replaces z by g(z)."""

    name: str = "iteration"
    tolerance: Positive = 1e-2

    def steps(self, start: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda point, image: image


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

    def steps(self, start: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        from raysim.models.fixed_point import History

        return History(start, self).next


class Broyden(Solver):
    """Broyden's quasi-Newton method, with full steps from an inverse Jacobian of -1 on (Broyden 1965).

    It keeps two vectors for each iteration, so its memory grows with `max_iterations`.
    """

    name: str = "broyden"
    tolerance: Positive = 1e-3

    def steps(self, start: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        from raysim.models.broyden import InverseJacobian

        return InverseJacobian(start, self.max_iterations).next


SOLVERS: tuple[type[Solver], ...] = (Iteration, Anderson, Broyden)
Backward = Literal["jacobian_free", "implicit", "conjugate_gradient"]
Start = Literal["zeros", "injection", "last"]
