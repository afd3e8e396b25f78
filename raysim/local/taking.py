"""Takes gradients as a scenario's `local.gradients` say."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from raysim.local.gradients import Gradient, GradientPoint, Take
from raysim.local.net import LossFunction, Net, Trainable

Taken = tuple[Tensor, Sequence[Tensor]]  # a batch's loss, 0-d, and the gradient of each parameter
# From a batch to that. ready: its plain gradient, where that is taken already.
Taker = Callable[[Tensor, Tensor, Taken | None], Taken]


def taker(
    gradients: Sequence[Gradient],
    net: Net,
    part: Trainable,
    loss: LossFunction | None,
    generator: Callable[[], torch.Generator],
) -> Taker:
    """Returns a function that takes the gradient of a batch. gradients: what is done with it, in order."""

    def plain(x: Tensor, y: Tensor, ready: Taken | None = None) -> Taken:
        return ready or net.gradients(x, y, part.parameters, loss)

    if not gradients:
        return plain
    vector, views = part.flat()
    waiting: list[tuple[Tensor, Taken]] = []

    def joined(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        ready = waiting.pop()[1] if waiting and waiting[0][0] is x else None
        value, pieces = plain(x, y, ready)
        torch._foreach_copy_(views, list(pieces))
        return value, vector

    point = GradientPoint(part.w, part.pieces, generator)
    take: Take = joined
    for one in gradients:
        take = partial(one.take, take, point)

    def all_of_them(x: Tensor, y: Tensor, ready: Taken | None = None) -> Taken:
        waiting[:] = [] if ready is None else [(x, ready)]
        value, gradient = take(x, y)
        return value, point.pieces(gradient)

    return all_of_them
