"""Adagrad (Duchi, Hazan, Singer, Adaptive subgradient methods for online learning and stochastic optimization, JMLR
2011)."""

from __future__ import annotations

from raysim.local.optimizers.optimizer import Optimizer, State
from raysim.parts.part import NonNegative, Positive
from raysim.terms import Tensor


class Adagrad(Optimizer):
    """Adagrad, as torch.optim.Adagrad: steps shrink with the sum of squared gradients (Duchi et al. 2011)."""

    name: str = "adagrad"
    initial: NonNegative = 0.0
    """Where the sums of squared gradients start."""
    eps: Positive = 1e-10
    """Added to the root in the denominator."""

    def init(self, w: Tensor) -> State:
        return {"sum": w.new_full(w.shape, self.initial)}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: float, taken: int) -> None:
        total = state["sum"].addcmul_(gradient, gradient)
        w.addcdiv_(gradient, total.sqrt().add_(self.eps), value=-lr)
