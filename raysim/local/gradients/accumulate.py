"""Mini-batches whose activations need not fit in memory at once."""

from __future__ import annotations

from raysim.local.gradients.gradient import Gradient, GradientPoint, Take
from raysim.parts.part import Count
from raysim.terms import Tensor


class Accumulate(Gradient):
    """Takes the gradient of a mini-batch piece by piece, and their mean, which needs less memory.

    Losses are taken to be means over samples or, where samples have several labels, over those that are not ignored.
    BatchNorm sees one piece at a time.
    """

    name: str = "accumulate"
    micro_batch: Count
    """Samples in a piece; the last one may have fewer."""

    def take(self, before: Take, at: GradientPoint, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        from raysim.local.outputs import counted

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
