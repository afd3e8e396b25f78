"""Deep equilibrium layers: z = g(z, x) (Bai, Kolter, Koltun, Deep equilibrium models, NeurIPS 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from raysim.models.fixed_point import Solution, adjoint, solve
from raysim.models.solver import Backward, Solver, Start


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

    start: the z at which a solve starts. `zeros`; `injection`: x; `last`: where the same sample's last solve ended, if
    `memory` knows it, else x. g must not have batch normalisation, which would count every iteration.
    """

    def __init__(self, g: nn.Module, solver: Solver, backward: Backward, start: Start) -> None:
        super().__init__()
        self.g = g
        self.solver = solver
        self.backward = backward
        self.start = start
        self.memory: Memory | None = None
        self.solved = Solves()  # counts since the caller last reset them
        self._dropouts = [m for m in g.modules() if isinstance(m, HeldDropout)]

    def remember(self, samples: int) -> None:
        """Remembers from now on where the solves of so many samples end, if `start` is `last`. 0 turns this off."""
        self.memory = Memory(samples) if samples and self.start == "last" else None

    def forward(self, x: Tensor) -> Tensor:
        """Returns g(z*, x), where z* is the fixed point."""
        z = torch.zeros_like(x) if self.start == "zeros" else x
        if self.memory is not None:
            z = self.memory.start(x.detach())
        for dropout in self._dropouts:
            dropout.mask = None
        point = self._solve(lambda z: self.g(z, x), z)
        if self.memory is not None:
            self.memory.keep(point)
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


class Memory:
    """Remembers where the last solve of each sample ended, (samples, ...)."""

    def __init__(self, samples: int) -> None:
        self.places: slice | Tensor = slice(None)  # indices of the next batch's samples
        self._known = torch.zeros(samples, dtype=torch.bool)
        self._points: Tensor | None = None

    def start(self, x: Tensor) -> Tensor:
        """Returns where the last solves of the next batch's samples ended, and x for samples without one."""
        if self._points is None:
            return x
        known = self._known[self.places].to(x.device).reshape(-1, *[1] * (x.dim() - 1))
        return torch.where(known, self._points[self.places], x)

    def keep(self, points: Tensor) -> None:
        """Remembers where the solves of that batch ended."""
        if self._points is None:
            self._points = points.new_empty(len(self._known), *points.shape[1:])
        self._points[self.places] = points
        self._known[self.places] = True


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
