"""Gradients with noise (Neelakantan et al., Adding gradient noise improves learning for very deep networks, 2015)."""

from __future__ import annotations

from raysim.local.gradients.gradient import Gradient, GradientPoint, Take
from raysim.parts.part import Positive
from raysim.terms import Tensor


class GradientNoise(Gradient):
    """Adds normal noise to gradients of mini-batches, drawn anew for each client, dispatch and step."""

    name: str = "noise"
    std: Positive
    """Standard deviation of the noise in each entry."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        import torch

        loss, gradient = before(x, y)
        for piece in at.pieces(gradient):  # not what pads the vector
            piece.add_(torch.randn(piece.shape, generator=at.generator(), device=piece.device), alpha=self.std)
        return loss, gradient
