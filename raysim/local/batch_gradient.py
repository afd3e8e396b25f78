"""The gradient of a mini-batch, taken as `local.gradients` say, and those of its samples, by torch.func."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from raysim.data.dataset import IGNORED
from raysim.data.named import NamedArrays
from raysim.local.gradients import Each, Gradient, GradientPoint
from raysim.local.outputs import LossFunction
from raysim.local.trainable import Trainable

BatchGradient = tuple[Tensor, Sequence[Tensor]]  # a batch's loss, 0-d, and the gradient of each parameter
Plain = Callable[[Tensor, Tensor], BatchGradient]  # from the inputs and targets of a batch
Taken = Callable[[Tensor, Tensor, BatchGradient | None], BatchGradient]  # the last: the plain one, if it is there

# Attention and LSTMs of a CPU go through the samples one by one, which is right, only slower.
warnings.filterwarnings("ignore", message="There is a performance drop because we have not yet implemented")


def gradient_of(
    parts: Sequence[Gradient],
    part: Trainable,
    plain: Plain,
    each: Each,
    generator: Callable[[], torch.Generator],
    expected: int | None,
) -> Taken:
    """Returns a function that takes the gradient of a batch as `local.gradients`, the parts, say.

    It gets the batch and, if that is taken already, its plain gradient. plain, each: take the gradient of a batch, and
    those of its samples. generator, expected: as in `GradientPoint`.
    """
    if not parts:
        return lambda x, y, ready: ready or plain(x, y)
    vector, views = part.flat()
    waiting: list[tuple[Tensor, BatchGradient]] = []  # the plain gradient of a batch that is taken already

    def take(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        is_ready = waiting and waiting[0][0] is x  # a part may ask for that of a piece of the batch
        value, pieces = waiting.pop()[1] if is_ready else plain(x, y)
        torch._foreach_copy_(views, list(pieces))
        return value, vector

    point = GradientPoint(part.w, part.pieces, generator, each, expected)
    for one in parts:
        take = partial(one.take, take, point)

    def taken(x: Tensor, y: Tensor, ready: BatchGradient | None) -> BatchGradient:
        waiting[:] = [] if ready is None else [(x, ready)]
        value, gradient = take(x, y)
        return value, point.pieces(gradient)

    return taken


def gradient_of_each(
    module: nn.Module, parameters: list[nn.Parameter], loss: LossFunction, x: Tensor, y: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Returns the loss of each sample of a batch, (n,), and its gradient for each parameter, (n, ...).

    A sample's loss is that of a batch which holds nothing else. Samples none of whose labels count are left out.
    """
    if y.ndim > 1 and not y.is_floating_point() and not bool((counts := (y != IGNORED).flatten(1).any(1)).all()):
        x, y = x[counts], y[counts]
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    values = {names[id(parameter)]: parameter.detach() for parameter in parameters}
    named = isinstance(x, NamedArrays)

    def of_one(values: dict[str, Tensor], x: Any, y: Tensor) -> Tensor:
        batch = NamedArrays({name: one[None] for name, one in x.items()}) if named else x[None]
        output = functional_call(module, values, (batch,))
        return loss(output.float(), y[None])

    each = vmap(grad_and_value(of_one), in_dims=(None, 0, 0), randomness="different")
    with torch.no_grad():  # nothing needs gradients of gradients
        gradients, losses = each(values, dict(x.items()) if isinstance(x, NamedArrays) else x, y)
    return losses, [gradients[name] for name in values]
