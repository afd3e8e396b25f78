"""Gradient steps on a small vector of a server's own, such as coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


def descent(optimizer: Literal["adam", "sgd"], lr: float, x: Tensor) -> Callable[[Tensor], None]:
    """Changes x in place, given its gradient. adam: Kingma and Ba 2015; sgd: plain."""

    def sgd(gradient: Tensor) -> None:
        x.sub_(gradient, alpha=lr)

    first, second, steps = x.new_zeros(x.shape), x.new_zeros(x.shape), 0

    def adam(gradient: Tensor) -> None:
        nonlocal steps
        steps += 1
        first.lerp_(gradient, 1 - BETA1)
        second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        root = second.sqrt().div_((1 - BETA2**steps) ** 0.5).add_(EPS)
        x.addcdiv_(first, root, value=-lr / (1 - BETA1**steps))

    return adam if optimizer == "adam" else sgd
