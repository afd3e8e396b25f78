"""Sharpness-aware minimization (Foret, Kleiner, Mobahi, Neyshabur, Sharpness-aware minimization for efficiently
improving generalization, ICLR 2021)."""

from __future__ import annotations

from typing import ClassVar

from raysim.local.gradients.gradient import Gradient, GradientPoint, Take
from raysim.parts.part import Positive
from raysim.terms import Tensor


class SAM(Gradient):
    """Sharpness-aware steps: gradients at w + radius * g / |g|, which cost a second pass (Foret et al. 2021)."""

    passes: ClassVar[int] = 2

    name: str = "sam"
    radius: Positive = 0.05
    """How far uphill from w the gradient is taken (rho)."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        import torch

        loss, uphill = before(x, y)
        here = at.w.clone()
        norm = torch.stack(torch._foreach_norm(at.pieces(uphill))).norm()
        at.w.add_(uphill * (self.radius / (norm + 1e-12)))
        _, gradient = before(x, y)
        at.w.copy_(here)
        return loss, gradient
