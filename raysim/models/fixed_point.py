"""Finds fixed points z = g(z) of a batch, for each sample on its own.

Anderson acceleration follows Walker and Ni (Anderson acceleration for fixed-point iterations, SIAM Journal on Numerical
Analysis 49(4), 2011), with a ridge, and takes plain steps until the history is full. torchdeq's solvers are not used,
because what they find for a sample depends on the rest of its batch.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from raysim.models.solver import Anderson, Solver

TINY = 1e-30  # smaller than any norm that matters; divisors are at least this, so that 0 / 0 is 0


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


class History:
    """The last points of a solve, (B, D) each, and the steps from them to their images under g."""

    def __init__(self, start: Tensor, solver: Anderson) -> None:
        self.solver = solver
        batch, size = start.shape
        self.points, self.steps = start.new_empty(2, batch, solver.history, size)
        self.seen = 0

    def next(self, point: Tensor, image: Tensor) -> Tensor:
        """Returns the next point. point, image: the last point and its image under g."""
        place = self.seen % self.solver.history
        self.points[:, place], self.steps[:, place] = point, image - point
        self.seen += 1
        if self.seen < self.solver.history:
            return image
        return mixture(self.points, self.steps, self.solver.ridge, self.solver.damping)


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


def _rows(z: Tensor) -> Tensor:
    """Returns z as (B, D). Images are read as B, H, W, C, which copies nothing if they are channels-last in memory."""
    return (z.movedim(1, -1) if z.dim() == 4 else z).flatten(1)


def _like(rows: Tensor, z: Tensor) -> Tensor:
    """Returns rows (B, D) in the shape of z, which undoes `_rows`."""
    if z.dim() != 4:
        return rows.view(z.shape)
    b, c, h, w = z.shape
    return rows.view(b, h, w, c).movedim(-1, 1)
