"""Optimisers that change the flat vector in place, by the formulas of torch.optim without its start-up cost."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from raysim.local.net import Net, Trainable
from raysim.local.settings import Local

# A step changes the part's w (n,) in place. It takes the gradient of each parameter, and a vector (n,) or None that is
# added to the joined gradient.
Step = Callable[[Sequence[Tensor], Tensor | None], None]


def _gather(net: Net, part: Trainable) -> Callable[[Sequence[Tensor], Tensor | None], Tensor]:
    """Returns a function that joins gradients to one vector (n,), and adds to it. A call overwrites the last result."""
    vector, views = part.flat(net.layout)

    def gather(gradients: Sequence[Tensor], extra: Tensor | None) -> Tensor:
        torch._foreach_copy_(views, list(gradients))
        return vector if extra is None else vector.add_(extra)

    return gather


def sgd(settings: Local, net: Net, part: Trainable) -> Step:
    """SGD with heavy-ball momentum: w <- w - lr * buffer, as torch.optim.SGD without dampening and nesterov."""
    if not settings.momentum and not settings.weight_decay:
        return _plain_sgd(settings, part)
    w, gather = part.w, _gather(net, part)
    buffer: Tensor | None = None

    def step(gradients: Sequence[Tensor], extra: Tensor | None) -> None:
        nonlocal buffer
        gradient = gather(gradients, extra)
        if settings.weight_decay:
            gradient.add_(w, alpha=settings.weight_decay)
        if settings.momentum:
            buffer = gradient.clone() if buffer is None else buffer.mul_(settings.momentum).add_(gradient)
            gradient = buffer
        w.add_(gradient, alpha=-settings.lr)

    return step


def _plain_sgd(settings: Local, part: Trainable) -> Step:
    """SGD without momentum and weight decay. It saves joining the gradients, a tenth of a small network's step."""
    w, views = part.w, part.views

    def step(gradients: Sequence[Tensor], extra: Tensor | None) -> None:
        if extra is not None:  # before w changes, for `extra` may be w itself
            w.add_(extra, alpha=-settings.lr)
        torch._foreach_add_(views, list(gradients), alpha=-settings.lr)

    return step


def adam(settings: Local, net: Net, part: Trainable) -> Step:
    """Adam (Kingma and Ba 2015), with the bias correction of torch.optim.Adam and eps where it has it."""
    w, gather = part.w, _gather(net, part)
    move = adam_on(w, settings.lr, settings.betas, settings.eps)

    def step(gradients: Sequence[Tensor], extra: Tensor | None) -> None:
        gradient = gather(gradients, extra)
        if settings.weight_decay:
            gradient.add_(w, alpha=settings.weight_decay)
        move(gradient)

    return step


def adam_on(
    x: Tensor, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
) -> Callable[[Tensor], None]:
    """Returns a function that takes a gradient of x, or of its first rows, and changes these in place by a step of
    Adam."""
    first, second, steps = torch.zeros_like(x), torch.zeros_like(x), 0

    def move(gradient: Tensor) -> None:
        nonlocal steps
        steps += 1
        mean, square = first[: len(gradient)], second[: len(gradient)]
        mean.lerp_(gradient, 1 - betas[0])
        square.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
        root = square.sqrt().div_((1 - betas[1] ** steps) ** 0.5).add_(eps)
        x[: len(gradient)].addcdiv_(mean, root, value=-lr / (1 - betas[0] ** steps))

    return move


def sgd_on(x: Tensor, lr: float) -> Callable[[Tensor], None]:
    """Returns a function that takes a gradient of x and changes x in place by a step of SGD without momentum."""

    def move(gradient: Tensor) -> None:
        x.sub_(gradient, alpha=lr)

    return move


OPTIMIZERS: dict[str, Callable[[Local, Net, Trainable], Step]] = {"sgd": sgd, "adam": adam}
