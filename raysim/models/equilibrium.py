"""Fixed points z = g(z) of a batch, and their adjoints, for each sample on its own; and deep equilibrium layers, z =
g(z, x) (Bai, Kolter, Koltun, Deep equilibrium models, NeurIPS 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from raysim.models.solver import TINY, Backward, Solver, Start

CG_TOLERANCE = 1e-3  # both as in the code of FeDEQ's authors
CG_ITERATIONS = 50


class Solution(NamedTuple):
    """The result of a solve."""

    z: Tensor  # (B, ...), like the start: each sample's g(z') with the smallest residual; the last of equal ones
    residual: Tensor  # (B,): |g(z') - z'| / |g(z')| of that z'
    iterations: Tensor  # (B,) int64: applications of g until the residual was at most the tolerance
    converged: Tensor  # (B,) bool


@torch.no_grad()
def solve(g: Callable[[Tensor], Tensor], start: Tensor, solver: Solver) -> Solution:
    """Looks for z = g(z), beginning at start (B, ...). g takes and returns tensors of that shape.

    A sample that has converged keeps its point, so that what is found for it does not depend on the rest of its batch;
    one whose residual is not finite keeps the last good point.
    """
    point = _rows(start)
    best, residual = point, point.new_full((len(point),), torch.inf)
    iterations = torch.zeros(len(point), dtype=torch.int64, device=point.device)
    following = solver.steps(point)
    for _ in range(solver.max_iterations):
        image = _rows(g(_like(point, start)))
        reached = (image - point).norm(dim=1) / image.norm(dim=1).clamp_min(TINY)
        running = residual > solver.tolerance
        better = running & (reached <= residual)  # <=, because all residuals are equal on the way to a fixed point 0
        best = torch.where(better[:, None], image, best)
        residual = torch.where(better, reached, residual)
        iterations += running
        if bool((residual <= solver.tolerance).all()):
            break
        point = following(point, image)
    return Solution(_like(best, start), residual, iterations, residual <= solver.tolerance)


@torch.no_grad()
def adjoint(z: Tensor, point: Tensor, gradient: Tensor) -> Solution:
    """Solves u - J^T u = gradient for u (B, ...) by conjugate gradients, where J = dz/dpoint.

    Hestenes, Stiefel, Methods of conjugate gradients for solving linear systems, Journal of Research of the National
    Bureau of Standards 49, 1952. It finds an adjoint even where iterating would not, because g is no contraction.

    z: g(point), with its graph, (B, ...). The normal equations are (1 - J)(1 - J^T) u = (1 - J) gradient. An iteration
    is a product with J^T and one with J; the residual is that of the normal equations, relative to their right side.
    """
    with torch.enable_grad():
        dummy = torch.zeros_like(z, requires_grad=True)
        (pulled,) = torch.autograd.grad(z, point, dummy, create_graph=True)

    def transposed(u: Tensor) -> Tensor:
        """Returns (1 - J^T) u."""
        return u - torch.autograd.grad(z, point, u, retain_graph=True)[0]

    def plain(v: Tensor) -> Tensor:
        """Returns (1 - J) v. J v is the gradient of <J^T dummy, v>, which is linear in dummy."""
        return v - torch.autograd.grad(pulled, dummy, v, retain_graph=True)[0]

    return solve_normal(plain, transposed, gradient)


def solve_normal(
    plain: Callable[[Tensor], Tensor], transposed: Callable[[Tensor], Tensor], gradient: Tensor
) -> Solution:
    """Solves A A^T u = A gradient for u (B, ...), from 0. plain: multiplies by A; transposed: by A^T."""
    right = plain(gradient)
    size = _dot(right, right).sqrt().clamp_min(TINY)
    found, rest, direction = torch.zeros_like(gradient), right, right
    squared = _dot(rest, rest)
    iterations = torch.zeros(len(gradient), dtype=torch.int64, device=gradient.device)
    for _ in range(CG_ITERATIONS):
        running = squared.sqrt() > CG_TOLERANCE * size
        if not bool(running.any()):
            break
        image = plain(transposed(direction))
        step = torch.where(running, squared / _dot(direction, image).clamp_min(TINY), 0)
        found, rest = found + _wide(step, found) * direction, rest - _wide(step, rest) * image
        before, squared = squared, torch.where(running, _dot(rest, rest), squared)
        direction = rest + _wide(squared / before.clamp_min(TINY), rest) * direction
        iterations += running
    residual = squared.sqrt() / size
    return Solution(found, residual, iterations, residual <= CG_TOLERANCE)


def _dot(one: Tensor, other: Tensor) -> Tensor:
    """Returns the inner products of samples, (B,)."""
    return (one * other).flatten(1).sum(1)


def _wide(numbers: Tensor, like: Tensor) -> Tensor:
    return numbers.reshape(-1, *[1] * (like.dim() - 1))


def _rows(z: Tensor) -> Tensor:
    """Returns z as (B, D). Images are read as B, H, W, C, which copies nothing if they are channels-last in memory."""
    return (z.movedim(1, -1) if z.dim() == 4 else z).flatten(1)


def _like(rows: Tensor, z: Tensor) -> Tensor:
    """Returns rows (B, D) in the shape of z, which undoes `_rows`."""
    if z.dim() != 4:
        return rows.view(z.shape)
    b, c, h, w = z.shape
    return rows.view(b, h, w, c).movedim(-1, 1)


class Solves(NamedTuple):
    """Counts of solves. Each sample of a batch counts as one solve, and so does its adjoint."""

    solves: int = 0
    iterations: int = 0
    unconverged: int = 0
    residual: float = 0.0  # the largest residual at the end of a solve

    def plus(self, other: Solves) -> Solves:
        """Returns the counts of both together."""
        return Solves(
            self.solves + other.solves,
            self.iterations + other.iterations,
            self.unconverged + other.unconverged,
            max(self.residual, other.residual),
        )


class Equilibrium(nn.Module):
    """The fixed point of a module g, which takes z and x of one shape (B, ...) and returns the next z.

    The solve records no gradients. After it, g is applied once more, with gradients, so memory does not grow with the
    number of iterations. With `jacobian_free`, gradients are those of this application alone, which takes z* as given
    (Fung, Heaton, Li, McKenzie, Osher, Yin, JFB, AAAI 2022). With `implicit`, they are exact, by the implicit function
    theorem: the adjoint u = J^T u + dL/dz is another fixed point, which the same solver finds. `conjugate_gradient`
    finds it as the solution of a linear system.

    start: the z at which a solve starts: `zeros`, or `injection`, which is x. g must not have batch normalisation,
    which would count every iteration.
    """

    def __init__(self, g: nn.Module, solver: Solver, backward: Backward, start: Start) -> None:
        super().__init__()
        self.g = g
        self.solver = solver
        self.backward = backward
        self.start = start
        self.solved = Solves()  # counts since the caller last reset them
        self._dropouts = [m for m in g.modules() if isinstance(m, HeldDropout)]

    def forward(self, x: Tensor) -> Tensor:
        """Returns g(z*, x), where z* is the fixed point."""
        z = torch.zeros_like(x) if self.start == "zeros" else x
        for dropout in self._dropouts:
            dropout.mask = None
        point = self._solve(lambda z: self.g(z, x), z)
        if self.backward == "jacobian_free" or not torch.is_grad_enabled():
            return self.g(point, x)  # type: ignore[no-any-return]
        return self._adjoin(point.detach().requires_grad_(), x)

    def _adjoin(self, point: Tensor, x: Tensor) -> Tensor:
        """Returns g(point, x), whose backward pass solves for the exact gradient of the fixed point."""
        z = self.g(point, x)

        def by_iteration(gradient: Tensor) -> Tensor:
            return self._solve(
                lambda u: torch.autograd.grad(z, point, u, retain_graph=True)[0] + gradient, start=gradient
            )

        def by_conjugate_gradient(gradient: Tensor) -> Tensor:
            return self._counted(adjoint(z, point, gradient))

        out: Tensor = z.view_as(z)  # a hook on z itself would be called by the adjoint solve too
        hook = by_iteration if self.backward == "implicit" else by_conjugate_gradient
        out.register_hook(hook)  # type: ignore[no-untyped-call]
        return out

    def _solve(self, g: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        return self._counted(solve(g, start, self.solver))

    def _counted(self, found: Solution) -> Tensor:
        """Counts the solves of a batch, and returns what they found."""
        unconverged, residual = int((~found.converged).sum()), float(found.residual.max())
        self.solved = self.solved.plus(Solves(len(found.z), int(found.iterations.sum()), unconverged, residual))
        return found.z


class HeldDropout(nn.Module):
    """Dropout that keeps its mask until that is set to None, because g must not change during a solve."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.mask: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        if self.mask is None:
            self.mask = F.dropout(torch.ones_like(x), self.p)
        return x * self.mask
