"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from raysim.local.optimizers.optimizer import Optimizer, State
from raysim.parts.part import Fraction
from raysim.terms import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, with heavy-ball or Nesterov momentum, as torch.optim.SGD."""

    name: str = "sgd"
    momentum: Fraction = 0.0
    """In each step, the momentum buffer is multiplied by this, and the gradient is added to it. 0: no momentum."""
    dampening: Fraction = 0.0
    """From the second step on, the gradient is multiplied by 1 minus this before it is added to the buffer."""
    nesterov: bool = False
    """Whether the step is along the gradient plus `momentum` times the buffer, instead of along the buffer."""

    @model_validator(mode="after")
    def _looks_ahead(self) -> Self:
        if self.nesterov and (not self.momentum or self.dampening):
            raise ValueError("nesterov needs a momentum above 0 and a dampening of 0; set them, or leave nesterov out")
        if self.dampening and not self.momentum:
            raise ValueError("dampening needs a momentum above 0; set it, or leave dampening out")
        return self

    def init(self, w: Tensor) -> State:
        return {"momentum": w.new_zeros(w.shape)} if self.momentum else {}

    def move(self, w: Tensor, gradient: Tensor, state: State, lr: float, taken: int) -> None:
        if self.momentum:
            buffer = state["momentum"]
            if taken:
                buffer.mul_(self.momentum).add_(gradient, alpha=1 - self.dampening)
            else:
                buffer.copy_(gradient)
            gradient = gradient.add_(buffer, alpha=self.momentum) if self.nesterov else buffer
        w.add_(gradient, alpha=-lr)
