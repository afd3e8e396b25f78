"""The solvers with which deep equilibrium layers find fixed points z = g(z), for each sample of a batch on its own.

torchdeq's solvers are not used, because what they find for a sample depends on the rest of its batch.
"""

from abc import abstractmethod
from collections.abc import Callable
from itertools import count
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from raysim.parts.lazy import torch
from raysim.parts.part import Count, NonNegative, Part, Positive
from raysim.terms import Tensor

TINY = 1e-30  # smaller than any norm that matters; divisors are at least this, so that 0 / 0 is 0
Backward = Literal["jacobian_free", "implicit", "conjugate_gradient"]
Start = Literal["zeros", "injection"]


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
    """Anderson acceleration: steps from the best mixture of the last points, with a ridge.

    Walker and Ni, Anderson acceleration for fixed-point iterations, SIAM Journal on Numerical Analysis 49(4), 2011.
    """

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
            text = f"history must be less than max_iterations, {self.max_iterations}, or nothing is ever mixed"
            raise ValueError(f"{text}, got {self.history}; lower it, or take `name: iteration`")
        return self

    def steps(self, start: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        points, moves = start.new_empty(2, len(start), self.history, start.shape[1])
        turns = count()

        def following(point: Tensor, image: Tensor) -> Tensor:
            turn = next(turns)
            points[:, turn % self.history], moves[:, turn % self.history] = point, image - point
            return image if turn + 1 < self.history else mixture(points, moves, self.ridge, self.damping)

        return following


class Broyden(Solver):
    """Broyden's quasi-Newton method for roots of f(z) = g(z) - z, with full steps from an inverse Jacobian of -1 on.

    Broyden, A class of methods for solving nonlinear simultaneous equations, Mathematics of Computation 19, 1965, the
    first of its methods. It keeps two vectors for each iteration, so its memory grows with `max_iterations`.
    """

    name: str = "broyden"
    tolerance: Positive = 1e-3

    def steps(self, start: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        # The estimate of the inverse of f's Jacobian is -1 + sum_k u_k v_k^T for each sample.
        us, vs = start.new_empty(2, len(start), self.max_iterations, start.shape[1])
        last: tuple[Tensor, Tensor] | None = None  # the last points, and their f
        updates = 0

        def following(point: Tensor, image: Tensor) -> Tensor:
            nonlocal last, updates
            value = image - point
            if last is not None and updates < self.max_iterations:
                moved, changed = point - last[0], value - last[1]
                u, v = us[:, :updates], vs[:, :updates]
                right = low_rank(v, u, moved)
                left = (moved - low_rank(u, v, changed)) / (right * changed).sum(1, keepdim=True)
                # A sample that has converged does not move: 0 / 0.
                us[:, updates], vs[:, updates] = left.nan_to_num(0, 0, 0), right.nan_to_num(0, 0, 0)
                updates += 1
            last = point, value
            return point - low_rank(us[:, :updates], vs[:, :updates], value)

        return following


def mixture(points: Tensor, steps: Tensor, ridge: float, damping: float) -> Tensor:
    """Returns sum_k a_k (z_k + damping r_k), (B, D), where a sums to 1 and minimises |sum_k a_k r_k|^2 + ridge R |a|^2.

    points: z, (B, m, D); steps: r = g(z) - z, (B, m, D). R is the largest |r_k|^2. Without the factor R, the mixture
    would become a plain mean as the steps get small, and the steps of gradients are small from the start.
    """
    batch, m, _ = steps.shape
    gram = steps @ steps.mT
    scale = gram.diagonal(dim1=1, dim2=2).amax(1).clamp_min(TINY)[:, None, None]
    system = steps.new_ones(batch, m + 1, m + 1)
    system[:, 0, 0] = 0
    system[:, 1:, 1:] = gram / scale + ridge * torch.eye(m, device=steps.device)
    right = steps.new_zeros(batch, m + 1)
    right[:, 0] = 1
    # torch.linalg.solve would end the run if a sample diverges, because its matrix may then be singular.
    solution, _ = torch.linalg.solve_ex(system, right)
    mixed: Tensor = solution[:, None, 1:] @ (points + damping * steps)
    return mixed.squeeze(1)


def low_rank(u: Tensor, v: Tensor, x: Tensor) -> Tensor:
    """Returns (-1 + sum_k u_k v_k^T) x, (B, D). u, v: (B, k, D)."""
    weights = (v * x[:, None]).sum(2, keepdim=True)
    product: Tensor = (u * weights).sum(1) - x
    return product


SOLVERS: tuple[type[Solver], ...] = (Iteration, Anderson, Broyden)
