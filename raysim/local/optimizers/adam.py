"""Adam (Kingma, Ba, Adam: A method for stochastic optimization, ICLR 2015)."""

from __future__ import annotations

from raysim.local.optimizers.optimizer import Optimizer, State
from raysim.parts.part import Decay, Positive
from raysim.terms import Tensor


class Adam(Optimizer):
    """Adam, as torch.optim.Adam: weight decay is added to the gradient (Kingma and Ba 2015)."""

    name: str = "adam"
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the running means of the gradient and of its square."""
    eps: Positive = 1e-8
    """Added to the root in the denominator."""

    def init(self, w: Tensor) -> State:
        return {"mean": w.new_zeros(w.shape), "square": w.new_zeros(w.shape)}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: float, taken: int) -> None:
        first, second = self.betas
        mean = state["mean"].lerp_(gradient, 1 - first)
        square = state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        root = square.sqrt().div_((1 - second ** (taken + 1)) ** 0.5).add_(self.eps)
        w.addcdiv_(mean, root, value=-lr / (1 - first ** (taken + 1)))
