"""What is done with the gradient of a mini-batch before the optimiser gets it. To add a part, put it in `GRADIENTS`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from raysim.local.outputs import counted
from raysim.parts.lazy import torch
from raysim.parts.part import Count, NonNegative, Positive
from raysim.schedules import Schedulable
from raysim.terms import Tensor

# From the inputs and labels of a batch to its loss, 0-d, and its gradient, (n,), which the next call may overwrite.
Take = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
# From the inputs and labels of a batch to the loss of each sample, (n,), and its gradient for each parameter, (n, ...).
Each = Callable[[Tensor, Tensor], tuple[Tensor, list[Tensor]]]
HELD = 2**25  # numbers that gradients of single samples take at once; fixed, because results depend on it bit by bit


class GradientPoint(NamedTuple):
    """Where a gradient is taken."""

    w: Tensor  # (n,), the parameters that are trained; they may be moved, and must be put back
    pieces: Callable[[Tensor], list[Tensor]]  # cuts a vector (n,) into views in the shapes of the parameters
    generator: Callable[[], torch.Generator]  # for draws; one for each training, with its own key
    each: Each  # takes gradients of single samples
    expected: int | None  # how many samples a mini-batch has in the mean, where mini-batches are drawn; else None


class Gradient(Schedulable):
    """A way to take or change the gradient of a mini-batch. A subclass adds its `name`."""

    passes: ClassVar[int] = 1
    """How many gradients of each sample it takes."""

    name: str

    @abstractmethod
    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a batch's loss, 0-d, and its gradient, (n,).

        before: takes a gradient as the parts named before this one do. x, y: the batch.
        """


class NormClipping(Gradient):
    """Shortens gradients of mini-batches that are longer than a bound, as torch's clip_grad_norm_.

    Pascanu, Mikolov, Bengio, On the difficulty of training recurrent neural networks, ICML 2013.
    """

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


class Accumulate(Gradient):
    """Takes the gradient of a mini-batch piece by piece, and their mean, which needs less memory.

    Losses are taken to be means over samples or, where samples have several labels, over those that are not ignored.
    BatchNorm sees one piece at a time.
    """

    name: str = "accumulate"
    micro_batch: Count
    """Samples in a piece; the last one may have fewer."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self.micro_batch >= len(y):
            return before(x, y)
        loss, total, all_labels = at.w.new_zeros(()), at.w.new_zeros(at.w.shape), counted(y)
        for first in range(0, len(y), self.micro_batch):
            labels = y[first : first + self.micro_batch]
            value, gradient = before(x[first : first + self.micro_batch], labels)
            share = counted(labels) / all_labels
            loss += value * share
            total.add_(gradient, alpha=share)
        return loss, total


class GradientNoise(Gradient):
    """Adds normal noise to gradients of mini-batches, drawn anew for each client, dispatch and step.

    Neelakantan et al., Adding gradient noise improves learning for very deep networks, 2015.
    """

    name: str = "noise"
    std: Positive
    """Standard deviation of the noise in each entry."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = before(x, y)
        for piece in at.pieces(gradient):  # not what pads the vector
            piece.add_(torch.randn(piece.shape, generator=at.generator(), device=piece.device), alpha=self.std)
        return loss, gradient


class SAM(Gradient):
    """Sharpness-aware steps: gradients at w + radius * g / |g|, which cost a second pass.

    Foret, Kleiner, Mobahi, Neyshabur, Sharpness-aware minimization for efficiently improving generalization, ICLR 2021.
    """

    passes: ClassVar[int] = 2

    name: str = "sam"
    radius: Positive = 0.05
    """How far uphill from w the gradient is taken (rho)."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss, uphill = before(x, y)
        here = at.w.clone()
        norm = torch.stack(torch._foreach_norm(at.pieces(uphill))).norm()
        at.w.add_(uphill * (self.radius / (norm + 1e-12)))
        _, gradient = before(x, y)
        at.w.copy_(here)
        return loss, gradient


class PerSample(Gradient):
    """Clips the gradient of each sample, and adds noise to their sum: (sum_i clip(g_i) + noise clip xi) / B (DP-SGD).

    Abadi et al., Deep learning with differential privacy, CCS 2016. It must come first. What an algorithm adds to the
    gradient, such as a proximal term, is added after it, and needs no noise.
    """

    name: str = "per_sample"
    clip: Positive
    """Largest norm of the gradient of one sample (C)."""
    noise: NonNegative = 0.0
    """Standard deviation of the noise in each entry of the sum, over `clip`: the noise multiplier (z)."""
    expected: Count | None = None
    """What the sum is divided by (B). null: the number of samples in the mini-batch; where mini-batches are drawn, as
    with `local.batches: poisson`, their mean number."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        total, losses = at.w.new_zeros(at.w.shape), [at.w.new_zeros(0)]
        pieces, size = at.pieces(total), max(1, HELD // len(at.w))
        for first in range(0, len(y), size):
            some, gradients = at.each(x[first : first + size], y[first : first + size])
            norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
            factors = (self.clip / norms).clamp_max(1)
            for piece, gradient in zip(pieces, gradients, strict=True):
                piece.add_(torch.tensordot(factors, gradient, 1))
            losses.append(some)
        for piece in pieces if self.noise else ():  # not what pads the vector
            xi = torch.randn(piece.shape, generator=at.generator(), device=piece.device)
            piece.add_(xi, alpha=self.noise * self.clip)
        loss = torch.cat(losses)
        return loss.sum() / max(1, len(loss)), total.div_(self.expected or at.expected or len(y))


GRADIENTS: tuple[type[Gradient], ...] = (NormClipping, ValueClipping, Accumulate, GradientNoise, SAM, PerSample)
