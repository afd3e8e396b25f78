"""Gradients that are bounded (Pascanu, Mikolov, Bengio, On the difficulty of training recurrent neural networks, ICML
2013)."""

from __future__ import annotations

from raysim.local.gradients.gradient import Gradient, GradientPoint, Take
from raysim.parts.part import Positive
from raysim.terms import Tensor


class NormClipping(Gradient):
    """Shortens gradients of mini-batches that are longer than a bound, as torch's clip_grad_norm_."""

    name: str = "clip_norm"
    max: Positive
    """Largest norm of the gradient of all parameters together."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = before(x, y)
        return loss, gradient.mul_((self.max / (gradient.norm() + 1e-6)).clamp_max(1))


class ValueClipping(Gradient):
    """Bounds each entry of gradients of mini-batches, as torch's clip_grad_value_."""

    name: str = "clip_value"
    max: Positive
    """Largest absolute value of an entry."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = before(x, y)
        return loss, gradient.clamp_(-self.max, self.max)
