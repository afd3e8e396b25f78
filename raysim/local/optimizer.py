"""Optimisers on flat vectors, in place, after torch.optim's formulas, without its start-up cost."""

from collections.abc import Callable

import torch
from torch import Tensor

from raysim.local.settings import Local

Step = Callable[[Tensor, Tensor], None]  # changes w (n,) in place, given its gradient (n,), which it may overwrite


def sgd(settings: Local) -> Step:
    """w <- w - lr (momentum buffer), as torch.optim.SGD without dampening and nesterov."""
    buffer: Tensor | None = None

    def step(w: Tensor, gradient: Tensor) -> None:
        nonlocal buffer
        if settings.weight_decay:
            gradient.add_(w, alpha=settings.weight_decay)
        if settings.momentum:
            buffer = gradient.clone() if buffer is None else buffer.mul_(settings.momentum).add_(gradient)
            gradient = buffer
        w.add_(gradient, alpha=-settings.lr)

    return step


def adam(settings: Local) -> Step:
    """Kingma and Ba 2015, with torch.optim.Adam's bias correction and place of eps."""
    beta1, beta2 = settings.betas
    first: Tensor | None = None
    second: Tensor | None = None
    steps = 0

    def step(w: Tensor, gradient: Tensor) -> None:
        nonlocal first, second, steps
        if settings.weight_decay:
            gradient.add_(w, alpha=settings.weight_decay)
        if first is None or second is None:
            first, second = torch.zeros_like(w), torch.zeros_like(w)
        steps += 1
        first.lerp_(gradient, 1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = second.sqrt().div_((1 - beta2**steps) ** 0.5).add_(settings.eps)
        w.addcdiv_(first, root, value=-settings.lr / (1 - beta1**steps))

    return step


OPTIMIZERS: dict[str, Callable[[Local], Step]] = {"sgd": sgd, "adam": adam}
