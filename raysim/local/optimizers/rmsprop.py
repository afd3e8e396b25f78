"""RMSprop (Hinton, Neural networks for machine learning, lecture 6e, 2012)."""

from __future__ import annotations

from raysim.local.optimizers.optimizer import Optimizer, State
from raysim.parts.part import Decay, Fraction, Positive
from raysim.terms import Tensor


class RMSprop(Optimizer):
    """RMSprop, as torch.optim.RMSprop: the gradient over the root of its running mean square (Hinton 2012)."""

    name: str = "rmsprop"
    alpha: Decay = 0.99
    """Decay of the running mean of the squared gradient and, if `centered`, of the running mean of the gradient."""
    eps: Positive = 1e-8
    """Added to the root in the denominator."""
    momentum: Fraction = 0.0
    """Heavy-ball momentum of the steps. 0: none."""
    centered: bool = False
    """Whether the square of the running mean is subtracted from the running mean square, which gives a variance."""

    def init(self, w: Tensor) -> State:
        names = ["square", *(["mean"] if self.centered else []), *(["momentum"] if self.momentum else [])]
        return {name: w.new_zeros(w.shape) for name in names}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: float, taken: int) -> None:
        spread = state["square"].mul_(self.alpha).addcmul_(gradient, gradient, value=1 - self.alpha)
        if self.centered:
            mean = state["mean"].lerp_(gradient, 1 - self.alpha)
            spread = spread.addcmul(mean, mean, value=-1)
        root = spread.sqrt().add_(self.eps)
        if self.momentum:
            w.add_(state["momentum"].mul_(self.momentum).addcdiv_(gradient, root), alpha=-lr)
        else:
            w.addcdiv_(gradient, root, value=-lr)
