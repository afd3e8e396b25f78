"""The conjugate gradient method on normal equations, for the adjoints of deep equilibrium layers.

Hestenes, Stiefel, Methods of conjugate gradients for solving linear systems, Journal of Research of the National Bureau
of Standards 49, 1952. It finds an adjoint even where iterating would not, because g is no contraction.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from raysim.models.fixed_point import TINY, Solution

TOLERANCE = 1e-3  # both as in the code of FeDEQ's authors
MAX_ITERATIONS = 50


@torch.no_grad()
def adjoint(z: Tensor, point: Tensor, gradient: Tensor) -> Solution:
    """Solves u - J^T u = gradient for u (B, ...), for each sample on its own, where J = dz/dpoint.

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
    for _ in range(MAX_ITERATIONS):
        running = squared.sqrt() > TOLERANCE * size
        if not bool(running.any()):
            break
        image = plain(transposed(direction))
        step = torch.where(running, squared / _dot(direction, image).clamp_min(TINY), 0)
        found, rest = found + _wide(step, found) * direction, rest - _wide(step, rest) * image
        before, squared = squared, torch.where(running, _dot(rest, rest), squared)
        direction = rest + _wide(squared / before.clamp_min(TINY), rest) * direction
        iterations += running
    residual = squared.sqrt() / size
    return Solution(found, residual, iterations, residual <= TOLERANCE)


def _dot(one: Tensor, other: Tensor) -> Tensor:
    """Returns the inner products of samples, (B,)."""
    return (one * other).flatten(1).sum(1)


def _wide(numbers: Tensor, like: Tensor) -> Tensor:
    return numbers.reshape(-1, *[1] * (like.dim() - 1))
