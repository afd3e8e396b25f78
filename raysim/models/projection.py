"""Layers whose weights are projected after each step of local training."""

import torch
from torch import Tensor, nn


class BoundedLinear(nn.Linear):
    """A linear layer whose weight has an l-infinity norm (the largest l1 norm of a row) of at most `bound`.

    With a bound below 1, and an activation with slopes of at most 1 after it, it is a contraction.
    """

    def __init__(self, inputs: int, outputs: int, bound: float) -> None:
        super().__init__(inputs, outputs, bias=False)
        self.bound = bound
        self.project()

    @torch.no_grad()
    def project(self) -> None:
        """Replaces the weight, in place, by the nearest one within the bound."""
        self.weight.copy_(project_rows(self.weight, self.bound))


def project_rows(matrix: Tensor, radius: float) -> Tensor:
    """Returns the nearest matrix whose rows have an l1 norm of at most `radius`; rows within it stay as they are.

    Duchi, Shalev-Shwartz, Singer, Chandra, Efficient projections onto the l1-ball for learning in high dimensions,
    ICML 2008, figure 1. matrix: (rows, columns).
    """
    sizes = matrix.abs()
    falling = sizes.sort(dim=1, descending=True).values
    counts = torch.arange(1, matrix.shape[1] + 1, device=matrix.device)
    excess = (falling.cumsum(1) - radius) / counts
    kept = (falling > excess).sum(1, keepdim=True).clamp_min(1)  # the count is 0 only if the row is not finite
    threshold = excess.gather(1, kept - 1).clamp_min(0)
    return matrix.sign() * (sizes - threshold).clamp_min(0)
